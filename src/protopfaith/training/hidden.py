"""How a network does on images of which a part is hidden: coalitions are such images."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from protopfaith.data import ImageSet, Preprocessing
from protopfaith.data.hiding import hide_share
from protopfaith.network import PrototypeNetwork
from protopfaith.training.metrics import accuracy_of
from protopfaith.training.recipe import Recipe

SHARES = (0.0, 0.25, 0.5, 0.75)
SIDE = 16
"""Of the windows that are hidden, in pixels; smaller where an image has fewer than seven of them."""
MOST = 500
"""Images: enough for two digits."""


@torch.no_grad()
def hidden_accuracies(
    model: PrototypeNetwork,
    images: ImageSet,
    preprocessing: Preprocessing,
    *,
    shares: Sequence[float] = SHARES,
    most: int = MOST,
    batch_size: int = 64,
) -> dict[float, float]:
    """Balanced accuracy with each share of the windows hidden (zero after normalization), the same ones each
    time.

    Args:
        model: the network, in evaluation mode
        images: at most `most` of them take part, spread over the set
        preprocessing: how images are prepared for the network
        shares: of the windows
        most: images
        batch_size: images at once

    >>> from protopfaith.network import ProtoPNet
    >>> from protopfaith.data import load_data
    >>> data = load_data("birds", size=16, train=8, validation=8, test=8)
    >>> model = ProtoPNet("small", list(data.classes), 1, 4).eval()
    >>> list(hidden_accuracies(model, data.test, data.preprocessing))
    [0.0, 0.25, 0.5, 0.75]
    """
    device = model.prototypes.device
    chosen = torch.linspace(0, len(images) - 1, min(most, len(images))).round().long()
    side = max(min(SIDE, *(length // 7 for length in preprocessing.size)), 1)
    found = {}
    for share in shares:
        generator = torch.Generator().manual_seed(0)
        logits = []
        for batch in chosen.split(batch_size):
            pixels = images.uint8(batch.tolist()).to(device)
            shown = hide_share(preprocessing.normalize(pixels), share, side, generator)
            logits.append(model(shown).cpu())
        found[share] = accuracy_of(torch.cat(logits), images.labels[chosen])
    return found


def seen_in_training(recipe: Recipe) -> bool:
    """Whether a network trained so has seen images with hidden regions.

    >>> from protopfaith.training import Recipe
    >>> seen_in_training(Recipe())
    False
    """
    hiding = recipe.augmentation.hide
    return hiding.share > 0 and (not hiding.copies or recipe.costs.hidden > 0)


def told(accuracies: dict[float, float]) -> str:
    """The accuracies in one line.

    >>> told({0.0: 0.9, 0.5: 0.75})
    'Balanced accuracy with 0 / 50% of the image hidden: 0.900 / 0.750'
    """
    shares = " / ".join(f"{100 * share:.0f}" for share in accuracies)
    values = " / ".join(f"{value:.3f}" for value in accuracies.values())
    return f"Balanced accuracy with {shares}% of the image hidden: {values}"

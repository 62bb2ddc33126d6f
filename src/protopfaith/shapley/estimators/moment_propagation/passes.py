"""Games on random variables: the game's function on an image whose players are present at random."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.moments import Gaussian
from protopfaith.shapley.estimators.moment_propagation.draws import Independent
from protopfaith.shapley.estimators.moment_propagation.presence import PlayerImage
from protopfaith.shapley.game import Game
from protopfaith.shapley.memory import fitting, unless_out_of_memory


def player_image(game: Game) -> PlayerImage:
    """The game's image with its players as on/off variables; `drawn` gives it its draws."""
    nobody = Independent(torch.zeros(1, device=game.device))
    return PlayerImage.of(game.image, game.baseline, game.players.labels, nobody)


def moment_pass(game: Game, image: PlayerImage) -> Tensor:
    """The expectation of the game's function over the image's draws, (B, outputs), without the game's
    autocast, which variances do not survive."""
    with torch.autocast(game.device.type, enabled=False):
        output = game.function(image)  # type: ignore[arg-type]
    if not isinstance(output, Gaussian):
        raise ProtoPFaithError(
            f"The function returned {type(output).__name__} for random variables, but moment propagation "
            "needs their moments; write the function with torch operations on its argument alone."
        )
    mean = output.moments[0]
    return mean[:, None] if mean.dim() == 1 else mean


def check_finite(values: Tensor) -> None:
    """Raises if a moment is NaN or infinite."""
    if not bool(torch.isfinite(values).all()):
        raise ProtoPFaithError(
            "Moment propagation gave NaN or infinity; check that the network's weights are finite, and run "
            "it in float32 without autocast."
        )


def fitting_passes(game: Game, function: Callable[[Tensor], Tensor]) -> int:
    """How many numbers `function` (m,) can take at a time within the game's memory bound."""
    one = torch.zeros(1, dtype=torch.long, device=game.device)
    unless_out_of_memory(function, one)  # fills what is kept for all batches
    return fitting(function, one, game.memory)

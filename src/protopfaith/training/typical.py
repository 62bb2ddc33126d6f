"""How images usually look to a network, by all of their distances, and how far from that they may be.

The nearest prototype alone says little: somewhere in an image of noise there is always something near to it.
So the distances of a whole image are summed up in some numbers, its traits, and these are compared with those
of training images of the class; how far validation images are from there says what is usual. What a network
does not look at is compared as well: a photograph is no radiograph, however near its prototypes are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from protopfaith.arguments import finite_number
from protopfaith.network import PrototypeNetwork, outcome_of

SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
"""Quantiles over prototypes, and over positions."""
USUAL = 0.99
"""Share of the validation images that counts as usual."""
FEWEST = 5
"""Training and validation images at least: fewer say nothing of what is usual."""
RANKED = 99
"""Validation images, from which on the tail is counted and not extrapolated."""
LENT = 10.0
"""A class's mean counts as if it had so many images more that are like those of all classes."""
FEW = 100
"""Validation images of a class, below which the tails of all classes are taken together."""
FEW_PROTOTYPES = 100
"""Up to so many have traits of their own; the covariances of more would not be known from 512 images."""
TINY = 1e-6
GRAY = 0.01
"""Channels that differ by less in their correlation are those of a gray image, stored with some loss."""
FAINT = 1e-4
"""Of logarithms of color: where all training images are gray, a standard deviation is `TINY` and a faintly
tinted image a few of these away, a photograph hundreds."""


@dataclass(frozen=True, eq=False, repr=False)
class Typical:
    """What is usual.

    Args:
        means: (C, F), float64: of the traits of each class's training images; (1, F) where images have
            several findings
        scales: (F,): standard deviations around these
        precision: (F, F): the inverse of the traits' correlations
        usual: 99% of validation images are nearer than this to the mean of the class that they are given
    """

    means: Tensor
    scales: Tensor
    precision: Tensor
    usual: float

    def distances(self, found: Tensor, labels: Tensor) -> Tensor:
        """How far images are from the mean of a class, in standard deviations (Mahalanobis): (B,).

        Args:
            found: (B, F), the `traits` of the images for these classes
            labels: (B,), the classes
        """
        centered = (found - self.means[labels.clamp_max(len(self.means) - 1)]) / self.scales
        return ((centered @ self.precision) * centered).sum(1).clamp_min(0).sqrt()

    def fits(self, found: Tensor) -> bool:
        """Whether traits are those of this version: others cannot be compared.

        Args:
            found: (..., F)
        """
        return found.shape[-1:] == self.scales.shape

    def to_json(self) -> dict[str, Any]:
        """For `reference.json`."""
        return {
            name: value.tolist() if isinstance(value, Tensor) else value for name, value in vars(self).items()
        }

    @staticmethod
    def from_json(values: Mapping[str, Any] | None) -> Typical | None:
        """What `to_json` wrote; None where earlier versions wrote nothing."""
        if values is None:
            return None
        names = ("means", "scales", "precision")
        means, scales, precision = (torch.tensor(values[name], dtype=torch.float64) for name in names)
        if means.dim() != 2 or precision.shape != 2 * scales.shape or means.shape[1:] != scales.shape:
            raise ValueError("other shapes")
        usual = finite_number(values["usual"], "The usual distance", least=0)
        if not all(bool(one.isfinite().all()) for one in (means, scales, precision)) or bool(
            (scales <= 0).any()
        ):
            raise ValueError("not what is usual")
        return Typical(means, scales, precision, usual)


def traits(model: PrototypeNetwork, images: Tensor, maps: Tensor, labels: Tensor) -> Tensor:
    """Numbers that sum up the distances of each image, and its looks: (B, F), float64, on the CPU.

    Of each prototype the smallest distance, the mean and the spread over positions; of these, quantiles over
    the prototypes of the class and over all others (over all together where not every class has its own, or
    images show several findings). Of each position the distance to the nearest prototype, and the spread over
    prototypes; of these, quantiles over positions. With few prototypes also what is known of each. And the
    image's own `looks`.

    Args:
        model: the network
        images: what it was asked about, (B, C, H, W), normalized
        maps: its distance maps, (B, P, h, w)
        labels: (B,): the class that each image is compared with; unused for several findings

    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", ["cat", "dog"], 2, 8)
    >>> traits(model, torch.rand(3, 3, 40, 40), torch.rand(3, 4, 5, 5), torch.tensor([0, 1, 1])).shape
    torch.Size([3, 72])
    """
    flat = maps.flatten(2).double().cpu()
    numbers = (flat.amin(2), flat.mean(2), flat.std(2, correction=0))
    groups = _groups(model, labels, flat.shape[:2])
    found = [_quantiles(one.masked_fill(~group, torch.nan)) for one in numbers for group in groups]
    places = (flat.amin(1), flat.std(1, correction=0))
    each = numbers if flat.shape[1] <= FEW_PROTOTYPES else ()
    return torch.cat([*found, *(_quantiles(one) for one in places), *each, looks(images)], dim=1)


def looks(images: Tensor) -> Tensor:
    """Brightness, contrast, roughness (steps between neighbors, as a share of the contrast) and, of several
    channels, color (how little they agree, whatever each is normalized by): (B, 3) or (B, 4).

    Args:
        images: (B, C, H, W)

    >>> gray = torch.rand(1, 1, 8, 8)
    >>> tinted = torch.cat([gray, 2 * gray - 1, gray + 3], dim=1)
    >>> float(looks(tinted)[0, 3]) == float(looks(gray.expand(1, 3, 8, 8))[0, 3])
    True
    """
    images = images.float()  # and where they are: float64 on a CPU would be several times as slow
    contrast = images.std((1, 2, 3), correction=0)
    steps = images.diff(dim=2).square().mean((1, 2, 3)) + images.diff(dim=3).square().mean((1, 2, 3))
    rough = (steps.sqrt() + TINY).log() - (contrast + TINY).log()
    found = [images.mean((1, 2, 3)), contrast, rough.nan_to_num()]
    if images.shape[1] > 1:
        found.append(FAINT * _disagreement(images.flatten(2)).clamp_min(GRAY).log())
    return torch.stack(found, dim=1).cpu().double()


def _disagreement(channels: Tensor) -> Tensor:
    """One minus the smallest correlation of a channel (B, C, N) with the first one; zero of constant ones."""
    centered = channels - channels.mean(2, keepdim=True)
    sizes = centered.norm(dim=2)
    products = (centered[:, 1:] * centered[:, :1]).sum(2)
    agree = products / (sizes[:, 1:] * sizes[:, :1]).clamp_min(TINY)
    flat = (sizes[:, 1:] < TINY) | (sizes[:, :1] < TINY)
    return 1 - torch.where(flat, 1.0, agree).amin(1)


def _groups(model: PrototypeNetwork, labels: Tensor, shape: torch.Size) -> list[Tensor]:
    """Which prototypes are looked at together, as masks (B, P)."""
    owners = model.prototype_classes.cpu()
    counts = torch.bincount(owners.clamp_min(-1) + 1, minlength=len(model.class_names) + 1)[1:]
    if outcome_of(model) == "several" or not 0 < int(counts.min()) <= int(counts.max()) < len(owners):
        return [torch.ones(shape, dtype=torch.bool)]
    own = owners == labels.cpu()[:, None]
    return [own, ~own]


def _quantiles(values: Tensor) -> Tensor:
    """(B, n) to (B, quantiles), leaving out what is not a number."""
    return torch.nanquantile(values, torch.tensor(SHARES, dtype=values.dtype), dim=1).T


def fit_typical(
    train: Tensor, train_labels: Tensor, validation: Tensor, validation_labels: Tensor, classes: int
) -> Typical | None:
    """What is usual, or None where there are too few images to tell.

    Means and covariances (shrunk as Ledoit and Wolf do) are those of training images; the limit is set by
    validation images, which these do not know.

    Args:
        train: (n, F), traits of training images
        train_labels: (n,)
        validation: (m, F)
        validation_labels: (m,), what the network says
        classes: how many there are; 1 for several findings
    """
    from sklearn.covariance import LedoitWolf

    if min(len(train), len(validation)) < FEWEST or not bool(torch.cat([train, validation]).isfinite().all()):
        return None
    middle = train.mean(0)
    members = torch.nn.functional.one_hot(train_labels, classes).double()
    means = (members.T @ train + LENT * middle) / (members.sum(0) + LENT)[:, None]
    around = train - means[train_labels]
    scales = around.std(0, correction=0).clamp_min(TINY * (1 + middle.abs()))
    inverse = torch.from_numpy(LedoitWolf().fit((around / scales).numpy()).precision_)
    fitted = Typical(means, scales, inverse, math.inf)
    return Typical(means, scales, inverse, _limit(fitted.distances(validation, validation_labels)))


def _limit(distances: Tensor) -> float:
    """What at most 1% of further images exceed: by rank, as in conformal prediction; of few images, whose
    largest says too little, at least what a normal distribution would have."""
    ordered, count = distances.sort().values, len(distances)
    if count >= RANKED:
        return float(ordered[math.ceil(USUAL * (count + 1)) - 1])
    from scipy.stats import t

    reach = float(t.ppf(USUAL, count - 1)) * math.sqrt(1 + 1 / count)
    return max(float(ordered[-1]), float(distances.mean() + reach * distances.std()))


def usual_distances(distances: Tensor, labels: Tensor, owners: Tensor, classes: int) -> Tensor:
    """For each class the distance to its nearest prototype that 99% of its images keep: (C,).

    The tail of few images says little: distances are compared with the median of their class, and how far the
    tail lies from there is taken from all classes that have fewer than 100 images, together.

    Args:
        distances: (n, P).
        labels: (n,).
        owners: (P,), the class of each prototype.
        classes: how many there are.
    """
    found = torch.full((classes,), torch.nan, dtype=torch.float64)
    if labels.dim() == 2:
        return _usual_finding_distances(distances, ~labels.isnan(), owners, found)
    if not len(distances) or not bool(torch.isin(labels, owners).all()):  # prototypes of no class
        return found
    own = torch.where(owners == labels[:, None], distances, torch.inf).amin(1)
    members = [own[labels == label] for label in range(classes)]
    middle = torch.stack([m.median() if len(m) else own.median() for m in members]).clamp_min(1e-12)
    tail = torch.quantile(own / middle[labels], USUAL)
    for label, mine in enumerate(members):
        found[label] = torch.quantile(mine, USUAL) if len(mine) >= FEW else tail * middle[label]
    return found


def _usual_finding_distances(distances: Tensor, known: Tensor, owners: Tensor, found: Tensor) -> Tensor:
    """Of several findings: to the nearest prototype for it or against it, of all images where it is known."""
    for finding in range(len(found)):
        mine = distances[known[:, finding]][:, owners == finding]
        if mine.numel():
            found[finding] = torch.quantile(mine.amin(1), USUAL)
    return found

"""Values of image regions with their errors: what a heat map shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from protopfaith.correlation import pearson, share_inside
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import PrototypeNetwork
from protopfaith.shapley import Attribution, Players
from protopfaith.shapley.players import height_and_width

UNDECIDED = 2.0  # standard errors


@dataclass(frozen=True, eq=False)
class RegionValues:
    """One output of a game: the players' shares in `total`, with standard errors.

    Args:
        values: (n,).
        standard_errors: (n,); NaN where the estimator does not know them.
        total: value of the whole image minus value of the baseline.
        gap: sum of the values minus total, before it was redistributed.
        players: the regions.
        sign: -1 where the output is a distance, of which a negative share means similarity, 1 for a logit.
        sure: (n,), the players whose sign is known, see `protopfaith.shapley.Attribution.decided`; None in
            explanations of earlier versions, and where players of several channels were added up.

    >>> players = Players.windows((2, 2), 1)
    >>> nothing = torch.zeros(4)
    >>> regions = RegionValues(torch.tensor([1.0, 0.0, -2.0, 0.0]), nothing, -1.0, 0.0, players, sign=-1)
    >>> regions
    RegionValues(4 regions, total=-1, gap=0)
    >>> regions.map().tolist()
    [[-1.0, -0.0], [2.0, -0.0]]
    """

    values: Tensor
    standard_errors: Tensor
    total: float
    gap: float
    players: Players
    sign: int
    sure: Tensor | None = None

    @property
    def evidence(self) -> Tensor:
        """The values with the sign that heat maps show: positive is more similar, or in favor of the
        class."""
        return self.sign * self.values

    @property
    def undecided(self) -> Tensor:
        """Players whose sign is not known, (n,): within two standard errors of zero, where nothing better is
        known. Nobody is where errors are unknown."""
        if self.sure is not None and self.errors_known:
            return ~self.sure
        return self.values.abs() < UNDECIDED * self.standard_errors

    @property
    def errors_known(self) -> bool:
        return bool(torch.isfinite(self.standard_errors).all())

    @cached_property
    def flat(self) -> RegionValues:
        """The same on regions that take all channels along, as a map (H, W) shows it: a region gets what its
        pixels get in all channels, a player's value being spread evenly over the player's own pixels.

        Errors of different players count as independent. Itself where channels are no players of their own.
        """
        if self.players.labels.dim() == 2:
            return self
        region, player, share = _pieces(self.players)
        nothing = share.new_zeros(len(self.players.flat))
        values = nothing.index_add(0, region, share * self.values[player])
        variances = nothing.index_add(0, region, (share * self.standard_errors[player]).square())
        errors = variances.sqrt()
        return replace(self, values=values, standard_errors=errors, players=self.players.flat, sure=None)

    def map(self, size: Sequence[int] | None = None) -> Tensor:
        """The evidence on its pixels, (H, W), summed over channels where these are players of their own.

        Args:
            size: height and width of another geometry, such as the original image's
        """
        labels = self.flat.players.labels
        if size is None:
            return self.flat.evidence[labels]
        size = height_and_width(size, "The size of a map", least=1)
        return self.flat.evidence[scaled_labels(labels, size)]

    def __repr__(self) -> str:
        return f"RegionValues({len(self.values)} regions, total={self.total:.4g}, gap={self.gap:.2g})"

    def share_inside(self, mask: Tensor) -> float:
        """The share of the map's positive evidence that lies on a mask; NaN without any.

        A region's value is spread evenly over its pixels.

        Args:
            mask: bool, H x W
        """
        flat = self.flat
        return float(share_inside((flat.evidence / flat.players.sizes)[flat.players.labels], mask))


def scaled_labels(labels: Tensor, size: Sequence[int]) -> Tensor:
    """Which region each pixel belongs to, (H, W), in another geometry (height, width).

    Nearest pixels: a region's value is one number, and stays it in every geometry.
    """
    if tuple(size) == tuple(labels.shape):
        return labels
    scaled = torch.nn.functional.interpolate(labels[None, None].double(), tuple(size), mode="nearest-exact")
    return scaled[0, 0].long()


def _pieces(players: Players) -> tuple[Tensor, Tensor, Tensor]:
    """Where players meet regions of `players.flat`: the region, the player, and the share of the player's
    pixels that lies there, (m,) each."""
    n = len(players)
    regions = players.flat.labels.expand_as(players.labels)
    pairs, counts = (regions * n + players.labels).unique(return_counts=True)
    player = pairs % n
    return pairs // n, player, counts.double() / players.sizes[player]


def region_values(attribution: Attribution, output: int, sign: int) -> RegionValues:
    """One output of an attribution.

    Args:
        attribution: of one game.
        output: which of its outputs.
        sign: -1 for a distance, 1 for a logit.
    """
    return RegionValues(
        attribution.values[output],
        attribution.standard_errors[output],
        float(attribution.total[output]),
        float(attribution.completeness_gap[output]),
        attribution.players,
        sign,
        attribution.of_outputs([output]).decided()[0],
    )


@dataclass(frozen=True)
class Agreement:
    """How far two maps over the same players agree.

    Args:
        correlation: Pearson's, over all players
        same_sign: share of the players that both maps decide that have equal sign; NaN without any
        compared: how many players both maps decide

    >>> players = Players.windows((2, 2), 1)
    >>> one, two = torch.tensor([1.0, 0.0, -2.0, 0.0]), torch.tensor([2.0, 0.0, -3.0, 0.0])
    >>> first, second = (RegionValues(v, torch.zeros(4), float(v.sum()), 0.0, players, 1) for v in (one, two))
    >>> found = agreement(first, second)
    >>> found.same_sign, found.compared, found.correlation > 0.99
    (1.0, 4, True)
    """

    correlation: float
    same_sign: float
    compared: int


def agreement(first: RegionValues, second: RegionValues) -> Agreement:
    """Pearson's correlation, and the signs where both are sure.

    Args:
        first: a map.
        second: another one over the same players.
    """
    a, b = first.evidence.double(), second.evidence.double()
    sure = ~(first.undecided | second.undecided)
    same = (a[sure].sign() == b[sure].sign()).double().mean() if bool(sure.any()) else torch.tensor(math.nan)
    return Agreement(float(pearson(a, b)), float(same), int(sure.sum()))


def class_map(model: PrototypeNetwork, result: Attribution, output: int, row: Tensor | None) -> RegionValues:
    """The regions' shares in what is explained, from a game on all distances and, among others, that.

    Values are the weighted sum of all prototypes' values, by linearity; standard errors are those of the
    output itself, since the prototypes' errors go together. With log similarity a logit is not linear in the
    distances, and a log probability never is: there its own game is all there is; likewise where an estimator
    was asked for few prototypes.

    Args:
        model: the network.
        result: of the game.
        output: which of its outputs is explained.
        row: weights (P,) with which similarities add up to it; None where they do not.
    """
    own = region_values(result, output, 1)
    distances = result.values[: len(model.prototypes)]
    if row is None or model.similarity != "linear" or bool(distances.isnan().any()):
        return own
    return replace(own, values=weighted_values(model, distances, row))


def weighted_values(model: PrototypeNetwork, prototype_values: Tensor, row: Tensor) -> Tensor:
    """Shares (P, n) in the distances, weighted by a row of F (P,): shares (n,) in the logit."""
    if model.similarity != "linear":
        raise ProtoPFaithError(
            f"With {model.similarity} similarity the logit is no weighted sum of distances, so weighted "
            "distance maps would not be true; use the class map, whose game is played on the logit."
        )
    return -(row.to(prototype_values) @ prototype_values)

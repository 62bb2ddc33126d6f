"""The map of a class: by linearity from the prototypes' maps, or from a game on its logit."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.decision import Case
from protopfaith.explanation.decomposition import class_row
from protopfaith.explanation.explanation import SecondBaseline
from protopfaith.explanation.regions import RegionValues, agreement, region_values
from protopfaith.network import ProtoPNet
from protopfaith.shapley import Attribution


def class_map(model: ProtoPNet, result: Attribution, row: Tensor) -> RegionValues:
    """The regions' shares in the class's logit, from a game on all distances and that logit (its last
    output).

    Values are the weighted sum of all prototypes' values, by linearity; standard errors are those of the
    logit itself, since the prototypes' errors go together. With log similarity the logit is not linear in the
    distances: there its own game is all there is; likewise where an estimator was asked for few
    prototypes.
    """
    own = region_values(result, len(result.values) - 1, 1)
    if model.similarity != "linear" or bool(result.values.isnan().any()):
        return own
    return replace(own, values=weighted_values(model, result.values[:-1], row))


def weighted_values(model: ProtoPNet, prototype_values: Tensor, row: Tensor) -> Tensor:
    """Shares (P, n) in the distances, weighted by a row of F (P,): shares (n,) in the logit."""
    if model.similarity != "linear":
        raise ProtoPFaithError(
            f"With {model.similarity} similarity the logit is no weighted sum of distances, so weighted "
            "distance maps "
            "would not be true; use the class map, whose game is played on the logit."
        )
    return -(row.to(prototype_values) @ prototype_values)


def compare(model: ProtoPNet, case: Case, first: Attribution, other: Attribution) -> SecondBaseline:
    row = class_row(model, case.target, case.versus).cpu().double()
    maps = [class_map(model, result, row) for result in (first, other)]
    return SecondBaseline(
        other.baseline,
        maps[1],
        agreement(*maps),
        {p: agreement(region_values(first, p, -1), region_values(other, p, -1)) for p in case.named},
    )

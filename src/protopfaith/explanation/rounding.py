"""Games in half precision: what rounding changed, and the network's own totals in its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from protopfaith.shapley import Attribution, Game
from protopfaith.shapley.attribution import redistribute

ROUNDING = "rounding"  # its name among the options of an attribution


@torch.no_grad()
def with_exact_totals(
    result: Attribution, function: Callable[[Tensor], Tensor], game: Game, driving: Sequence[int]
) -> Attribution:
    """The result of a game under autocast, with the totals that the function has without it.

    What rounding changed is redistributed as any gap is, in proportion to the values' variances: values then
    add up to the network's own numbers. It counts in the completeness gap, and the options hold how large it
    is, relative to the total, for the worst of the outputs `driving`.
    """
    whole, nothing = function(torch.stack([game.image, game.baseline])).double().cpu()
    total = whole - nothing
    change = result.total - total
    worst = (change[list(driving)].abs() / total[list(driving)].abs().clamp_min(1e-30)).max()
    variances = result.standard_errors.square().nan_to_num(nan=0.0)
    return replace(
        result,
        values=redistribute(result.values, variances, total)[0],
        total=total,
        completeness_gap=result.completeness_gap + change,
        options={**result.options, ROUNDING: float(worst)},
    )

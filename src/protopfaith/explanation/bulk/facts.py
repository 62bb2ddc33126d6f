"""Whether rows say what can be: probabilities, classes, totals, and the places of their images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from protopfaith.explanation.bulk.arrow import pyarrow_module


def check_facts(table: Any, classes: Sequence[str], positions: range) -> None:
    """Raises if a row says what no explanation can; columns that are not there are not looked at.

    Args:
        table: rows of a part
        classes: of the network
        positions: of the images of the part
    """
    compute = pyarrow_module("compute")
    there = set(table.column_names)
    if "position" in there and table["position"].to_pylist() != list(positions):
        raise ValueError("the positions of its rows are not those of its images")
    for name in sorted(there & {"prediction", "class", "versus"}):
        strange = set(compute.unique(table[name]).to_pylist()) - {*classes, None}
        if strange:
            raise ValueError(f"its column {name} has {min(strange)!r}, which is no class of the network")
    if "total" in there and not compute.all(compute.is_finite(table["total"]), min_count=0).as_py():
        raise ValueError("some of its totals are no numbers")
    if "probability" in there and not _are_shares(compute, table["probability"]):
        raise ValueError("some of its probabilities are not between 0 and 1")
    if "probabilities" in there and not _are_shares(compute, compute.list_flatten(table["probabilities"])):
        raise ValueError("some of its probabilities are not between 0 and 1")


def _are_shares(compute: Any, column: Any) -> bool:
    """Whether all that is there is from 0 to 1; NaN is not. Rounding may go a little beyond."""
    inside = compute.and_(compute.greater_equal(column, -1e-6), compute.less_equal(column, 1 + 1e-6))
    return bool(compute.all(inside, min_count=0).as_py())

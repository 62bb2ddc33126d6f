from __future__ import annotations

import math

import pytest

from protopfaith.evaluation import Faithfulness, faithfulness
from protopfaith.evaluation.metrics.axioms import AxiomCheck
from protopfaith.evaluation.results import worst


@pytest.fixture(scope="module")
def found(run, tmp_path_factory) -> Faithfulness:
    quick = {"players": 8, "steps": 10, "budget": 128, "truth_budget": 0, "checked": 1, "progress": False}
    return faithfulness(
        run, tmp_path_factory.mktemp("results"), prototypes=3, explainers=["owen", "random"], **quick
    )


def test_one_line_tells_what_it_is(found) -> None:
    for thing in (found, *found.results, found.health):
        assert "\n" not in repr(thing)
        assert len(repr(thing)) < 250


def test_a_part_has_the_rows_of_the_whole(found) -> None:
    first = found.prototypes[0]
    part = found.only([first])
    assert part.prototypes == (first,)
    whole, some = found.prototypes_frame(), part.prototypes_frame()
    assert some.equals(whole[whole.prototype == first].reset_index(drop=True))


def test_frames_have_one_row_for_each(found) -> None:
    assert list(found.frame().index) == ["owen", "random"]
    assert len(found.prototypes_frame()) == 2 * 3


def test_the_worst_check_is_furthest_beyond_what_is_allowed() -> None:
    checks = [AxiomCheck("a", violation, allowed) for violation, allowed in ((0.2, 1.0), (0.1, 0.01))]
    unknown = AxiomCheck("a", math.nan, 0.01)
    assert worst([[checks[0]], [unknown], [checks[1]]]) == (checks[1],)

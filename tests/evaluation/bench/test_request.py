from __future__ import annotations

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.bench.request import check_request
from protopfaith.evaluation.bench.settings import make_settings
from protopfaith.evaluation.explainers import default_explainers


def test_what_is_usual_is_fine() -> None:
    check_request(default_explainers(), 8, make_settings((48, 48), "cpu"))


@pytest.mark.parametrize(
    ("names", "prototypes", "settings", "message"),
    [
        ([], 8, {}, "No explainer was named"),
        (["our"], 8, {}, "did you mean 'ours'"),
        (["ours"], 0, {}, "number of prototypes is 0"),
        (["ours"], 8, {"steps": 3}, "number of steps is 3"),
        (["ours"], 8, {"checked": 0}, "number of checked images is 0"),
        (["ours"], 8, {"limits": {"dasp": 0}}, "limit of dasp is 0"),
        (["ours"], 8, {"limits": {"nothing": 1}}, "no explainer named 'nothing'"),
        (["ours"], 8, {"budget": 4}, "budget"),
        (["ours"], 8, {"truth_budget": 4}, "truth_budget=4"),
    ],
)
def test_what_cannot_come_to_a_good_end_is_said_before_any_work(names, prototypes, settings, message) -> None:
    with pytest.raises(ProtoPFaithError, match=message):
        check_request(names, prototypes, make_settings((48, 48), "cpu", **settings))

from __future__ import annotations

from types import SimpleNamespace

import torch

from protopfaith.show.wording.costs import cost, told_error


def test_estimators_that_evaluate_count_evaluations_and_others_passes() -> None:
    assert cost(SimpleNamespace(method="adaptive_owen", evaluations=4096)) == "4,096 evaluations"
    assert cost(SimpleNamespace(method="dasp", evaluations=12)) == "12 passes"


def test_an_error_is_unknown_where_standard_errors_are() -> None:
    assert told_error(torch.ones(3), 0.2) == "20%"
    assert told_error(torch.tensor([1.0, torch.nan]), 0.2) == "unknown"

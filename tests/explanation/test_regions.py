from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from protopfaith.explanation import Explanation, RegionValues
from protopfaith.explanation.regions import agreement
from protopfaith.shapley import Players


def test_undecided_regions_are_within_two_standard_errors(explanation: Explanation) -> None:
    regions = explanation.class_map
    for value, error, undecided in zip(
        regions.values.tolist(), regions.standard_errors.tolist(), regions.undecided.tolist(), strict=True
    ):
        assert undecided == (abs(value) < 2 * error)


def test_shares_inside_a_mask() -> None:
    players = Players.windows((4, 4), 2)
    regions = RegionValues(torch.tensor([-3.0, 1.0, -1.0, 0.0]), torch.zeros(4), -3.0, 0.0, players, -1)
    mask = torch.zeros(4, 4, dtype=torch.bool)
    mask[:2, :1] = True  # half of the first region, which has three quarters of the positive evidence
    assert regions.share_inside(mask) == pytest.approx(3 / 8)
    nothing = replace(regions, values=torch.ones(4))
    assert math.isnan(nothing.share_inside(mask))


def test_agreement_compares_what_both_decide() -> None:
    players = Players.windows((4, 4), 2)
    errors = torch.full((4,), 0.4)
    first = RegionValues(torch.tensor([1.0, -1.0, 0.1, 2.0]), errors, 2.1, 0.0, players, 1)
    second = replace(first, values=torch.tensor([1.0, 1.0, 5.0, 2.0]))
    found = agreement(first, second)
    assert found.compared == 3
    assert found.same_sign == pytest.approx(2 / 3)
    expected = float(torch.corrcoef(torch.stack([first.values, second.values]))[0, 1])
    assert found.correlation == pytest.approx(expected)
    constant = agreement(first, replace(first, values=torch.full((4,), 0.1)))
    assert constant.correlation == 0  # reports print it: a number, not NaN

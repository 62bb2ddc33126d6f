from __future__ import annotations

from dataclasses import replace

import torch

from protopfaith.explanation import RegionValues
from protopfaith.shapley import Players
from protopfaith.show.heat import decided, edges, scale_of, shown_evidence


def regions(values: list[float], errors: list[float], sign: int = 1) -> RegionValues:
    labels = torch.arange(len(values)).view(1, -1)
    tensor = torch.tensor(values, dtype=torch.float64)
    return RegionValues(tensor, torch.tensor(errors).double(), sum(values), 0.0, Players(labels), sign)


def test_the_scale_is_that_of_what_is_colored() -> None:
    mine = regions([9.0, -2.0, 1.0], [9.0, 0.1, 0.1])
    assert decided(mine).tolist() == [False, True, True]
    assert scale_of([mine]) == 2
    assert scale_of([replace(mine, standard_errors=torch.full((3,), torch.nan))]) == 9
    assert scale_of([regions([1.0], [5.0])]) == 1  # nothing is colored, and nothing is divided by zero


def test_what_is_shown_has_the_sign_of_evidence() -> None:
    assert shown_evidence(regions([-2.0, 0.1], [0.1, 0.1], sign=-1)).tolist() == [2, 0]


def test_lines_go_around_strong_and_weak_regions_of_either_sign() -> None:
    mine = regions([9.0, -8.0, 1.0, 0.1], [0.1] * 4)
    found = {(edge.sign, edge.strong): edge.members.tolist() for edge in edges(mine, 9.0)}
    assert found == {
        (1, False): [False, False, True, False],
        (-1, True): [False, True, False, False],
        (1, True): [True, False, False, False],
    }
    assert edges(replace(mine, standard_errors=torch.full((4,), torch.nan)), 9.0) == []

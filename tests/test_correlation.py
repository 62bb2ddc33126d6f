from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr, spearmanr
from torch import Tensor

from protopfaith.correlation import pearson, share_inside, spearman


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_correlations_are_those_of_scipy(seed: int) -> None:
    a, b = random(3, 12, seed=seed).round(decimals=1), random(3, 12, seed=seed + 1).round(decimals=1)
    for row in range(3):
        assert float(pearson(a, b)[row]) == pytest.approx(pearsonr(a[row], b[row])[0])
        assert float(spearman(a, b)[row]) == pytest.approx(spearmanr(a[row], b[row])[0])


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, -1e-9, 1e300])
@pytest.mark.parametrize("correlation", [pearson, spearman])
def test_a_constant_map_tells_nothing(correlation, value: float) -> None:
    """Also where its mean is off by rounding, as that of seven times 0.1."""
    constant = torch.full((7,), value, dtype=torch.float64)
    for other in (random(7), constant, torch.full((7,), 0.3, dtype=torch.float64)):
        assert float(correlation(constant, other)) == 0
        assert float(correlation(other, constant)) == 0


def test_small_differences_on_a_large_constant_count() -> None:
    small = random(20)
    assert float(pearson(1e6 + small, small)) == pytest.approx(1, abs=1e-6)


def test_share_inside_a_mask() -> None:
    maps = torch.tensor([[[1.0, 2.0], [-5.0, 1.0]], [[-1.0, -1.0], [-1.0, -1.0]]])
    mask = torch.tensor([[True, False], [True, False]])
    inside = share_inside(maps, mask)
    assert float(inside[0]) == pytest.approx(0.25)
    assert math.isnan(float(inside[1]))
    assert torch.equal(share_inside(maps[0], mask), inside[0])

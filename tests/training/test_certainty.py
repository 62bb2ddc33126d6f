from itertools import product

import pytest
import torch

from protopfaith.training.certainty import NORMAL, balanced_interval, largest_variance


def wilson(share: float, images: int) -> tuple[float, float]:
    center = (share + NORMAL**2 / (2 * images)) / (1 + NORMAL**2 / images)
    spread = NORMAL / (1 + NORMAL**2 / images)
    spread *= (share * (1 - share) / images + NORMAL**2 / (4 * images**2)) ** 0.5
    return center - spread, center + spread


@pytest.mark.parametrize("accuracy", [0.0, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("per_class", [[40], [7, 7], [1] * 30])
def test_with_equal_classes_it_is_wilsons(accuracy: float, per_class: list[int]) -> None:
    found = balanced_interval(accuracy, [*per_class, 0])  # a class without images does not count
    assert found == pytest.approx(wilson(accuracy, sum(per_class)), abs=1e-6)


@pytest.mark.parametrize("counts", [[3, 40], [2, 5, 9]])
@pytest.mark.parametrize("mean", [0.1, 0.5, 0.85, 1.0])
def test_no_classes_vary_more(counts: list[int], mean: float) -> None:
    """All shares on a grid, the last one what the mean leaves to it."""
    largest = 0.0
    for some in product([i / 100 for i in range(101)], repeat=len(counts) - 1):
        shares = [*some, len(counts) * mean - sum(some)]
        if 0 <= shares[-1] <= 1 + 1e-9:
            variance = sum(p * (1 - p) / n for p, n in zip(shares, counts, strict=True)) / len(counts) ** 2
            largest = max(largest, variance)
    assert largest_variance(mean, counts) == pytest.approx(largest, abs=2e-4)
    assert largest_variance(mean, counts) >= largest - 1e-9


@pytest.mark.parametrize(
    ("counts", "recalls"), [([40, 4], [0.95, 0.6]), ([40, 4], [0.9, 0.9]), ([5] * 10, 10 * [0.8])]
)
def test_it_holds_what_is_true(counts: list[int], recalls: list[float]) -> None:
    generator = torch.Generator().manual_seed(0)
    draws = [
        torch.binomial(torch.full((400,), float(n)), torch.full((400,), p), generator=generator) / n
        for n, p in zip(counts, recalls, strict=True)
    ]
    truth = sum(recalls) / len(recalls)
    held = 0
    for accuracy in torch.stack(draws).mean(0).tolist():
        low, high = balanced_interval(accuracy, counts)
        assert low <= accuracy <= high
        held += low <= truth <= high
    assert held / 400 > 0.92


def test_a_rare_class_makes_it_wider() -> None:
    assert balanced_interval(1.0, [40, 4])[0] < balanced_interval(1.0, [22, 22])[0] < 1.0

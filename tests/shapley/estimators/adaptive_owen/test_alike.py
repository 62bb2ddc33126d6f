import pytest
import torch

from protopfaith.shapley import estimate
from protopfaith.shapley.estimators.adaptive_owen.alike import Curve, Inverse, missed_share

from ...games import mask_game


def spd(m: int, seed: int = 0) -> torch.Tensor:
    a = torch.randn(m, m, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return a @ a.T / m + 0.3 * torch.eye(m, dtype=torch.float64)


def test_what_two_samples_do_to_each_other_is_that_of_leaving_out_both() -> None:
    m, kernel = 7, spd(7)
    y = torch.randn(m, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    shared = spd(m, 2)

    def left_of(k: int, out: set[int]) -> float:
        """What is left over of sample k where some are not learned from."""
        others = [j for j in range(m) if j not in out | {k}]
        weights = torch.linalg.solve(kernel[others][:, others], y[others])
        return float(y[k] - kernel[k, others] @ weights)

    alone = torch.tensor([left_of(k, set()) for k in range(m)], dtype=torch.float64)
    missed = sum(
        float(shared[j, k]) * (left_of(k, {j}) - alone[k]) * (left_of(j, {k}) - alone[j])
        for j in range(m)
        for k in range(m)
        if j != k
    )
    shown = float((alone.square() * shared.diagonal()).sum())
    found = missed_share(torch.linalg.inv(kernel), alone[:, None], shared, torch.arange(m))
    assert found.tolist() == pytest.approx([max(1 + float(missed) / shown, 1.0)])


def test_a_curve_that_was_subtracted_makes_no_difference() -> None:
    m, generator = 60, torch.Generator().manual_seed(0)
    p = torch.rand(m, dtype=torch.float64, generator=generator)
    y = torch.randn(m, 2, dtype=torch.float64, generator=generator)
    curve, root = Curve.of(p), torch.linalg.inv(torch.linalg.cholesky(spd(m)))[None]
    moved = y + 0.1 * curve.hats @ torch.randn(10, 2, dtype=torch.float64, generator=generator)
    first, second = (Inverse(root, curve.beside(root, some).explained).times(some) for some in (y, moved))
    plain = [Inverse(root, None).times(some) for some in (y, moved)]
    assert float((first - second).norm()) < 0.05 * float((plain[0] - plain[1]).norm())


def test_the_inverse_s_parts_are_those_of_the_whole() -> None:
    root = torch.linalg.inv(torch.linalg.cholesky(spd(6)))[None]
    right, partner = torch.randn(6, 2, dtype=torch.float64), torch.tensor([1, 0, 3, 2, 5, 4])
    for explained in (None, 0.1 * torch.randn(1, 6, 3, dtype=torch.float64)):
        inverse = Inverse(root, explained)
        whole = inverse.whole()[0]
        assert torch.allclose(inverse.times(right)[0], whole @ right)
        assert torch.allclose(inverse.diagonal()[0], whole.diagonal())
        assert torch.allclose(inverse.diagonal(partner)[0], whole[torch.arange(6), partner])


def test_values_and_intervals_of_few_players_hold() -> None:
    """A quarter of all coalitions of ten players: values were 2% too large, 88% of intervals held."""
    worth = torch.tensor([0.1, 0.2, 0.4, 0.5, 0.9, 1.1, 1.4, 1.5, 2.2, 3.0], dtype=torch.float64)
    game = mask_game(lambda masks: (masks.double() * worth).amax(1), 10)
    truth = estimate(game, "exact").values
    found = [estimate(game, budget=256, seed=seed, shrinkage=False) for seed in range(40)]
    centered = truth - truth.mean()
    slopes = torch.stack([(some.values * centered).sum() / centered.square().sum() for some in found])
    assert abs(float(slopes.mean()) - 1) < 0.006
    off = torch.stack([(some.values - truth).abs() / some.standard_errors for some in found])
    assert float((off < 1.96).double().mean()) > 0.92

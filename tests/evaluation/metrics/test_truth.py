from __future__ import annotations

import re

import pytest
import torch
from torch import Tensor

from protopfaith.correlation import pearson
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.explainers import Explained, density
from protopfaith.evaluation.metrics.truth import check_true_values, compare_with_truth, true_values
from protopfaith.shapley import Game, Players, estimate


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def game_of(n: int, seed: int = 0) -> Game:
    """Pairs interact: a quadratic form of presence."""
    form = random(n, n, seed=seed)

    def value(images: Tensor) -> Tensor:
        present = (images[:, 0, 0] > 0.5).double()
        return torch.stack([((present @ form) * present).sum(1), present @ form[0]], 1)

    return Game(value, torch.ones(1, 1, n), Players.windows((1, n), 1))


def test_the_truth_agrees_with_itself_and_its_opposite_does_not() -> None:
    truth = random(4, 20)
    same, opposite, doubled = (compare_with_truth(values, truth) for values in (truth, -truth, 2 * truth))
    assert torch.allclose(same.pearson, torch.ones(4, dtype=torch.float64))
    assert float(same.relative_error.abs().max()) == 0
    assert torch.allclose(opposite.spearman, -torch.ones(4, dtype=torch.float64))
    assert torch.allclose(doubled.pearson, same.pearson)
    assert torch.allclose(doubled.relative_error, torch.ones(4, dtype=torch.float64))


def test_few_players_have_an_exact_truth() -> None:
    game = game_of(6)
    truth = true_values(game, budget=10)
    assert torch.allclose(truth.values, estimate(game, "exact").values)
    assert torch.allclose(truth.reliability, torch.ones(2, dtype=torch.float64))


def test_reliability_foretells_the_correlation_with_another_truth() -> None:
    """Averaged over games, as any single one is noisy."""
    foretold, found = [], []
    for seed in range(8):
        game = game_of(16, seed)
        first, second = (true_values(game, 128, seed=s) for s in (1, 2))
        foretold.append(first.reliability[0])
        found.append(pearson(first.values, second.values)[0])
    assert float(torch.stack(foretold).mean()) == pytest.approx(float(torch.stack(found).mean()), abs=0.08)


def test_more_evaluations_make_a_more_reliable_truth() -> None:
    game = game_of(16)
    few, many = (true_values(game, budget) for budget in (128, 4096))
    assert float(many.reliability.min()) > float(few.reliability.min())
    assert not torch.equal(many.halves[0], many.halves[1])


def test_values_of_other_players_are_refused() -> None:
    with pytest.raises(ProtoPFaithError, match="same players"):
        compare_with_truth(random(1, 4), random(1, 5))


def test_values_survive_being_painted_onto_pixels() -> None:
    players, values = Players.windows((7, 5), 3), random(2, 6)
    assert torch.allclose(Explained(density(values, players), True).values(players), values)


@pytest.mark.parametrize("budget", [1, 2, 40])
def test_a_budget_too_small_for_two_halves_is_told_with_one_that_is_not(budget: int) -> None:
    game = Game(lambda images: images.flatten(1).sum(1), torch.ones(1, 16, 16), 2)
    with pytest.raises(ProtoPFaithError, match="two halves of it; give at least") as told:
        true_values(game, budget)
    least = int(re.findall(r"at least (\d+)", str(told.value))[0])
    check_true_values(game, least)
    with pytest.raises(ProtoPFaithError):
        check_true_values(game, least - 1)

"""What every estimator must do: converge to the exact values, keep the axioms, know its own error."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from protopfaith.shapley import Game, Players, estimate

from ..games import SAMPLING, mask_game, network_game, random_table, table_game


def relative_error(result, truth):
    return float(((result.values - truth).square().mean() / truth.square().mean()).sqrt())


@pytest.mark.parametrize("method", SAMPLING)
@given(n=st.integers(5, 8), seed=st.integers(0, 1000))
@settings(max_examples=8, deadline=None)
def test_every_estimator_converges_to_the_exact_values(method, n, seed):
    game = table_game(random_table(n, seed=seed))
    truth = estimate(game, "exact").values
    few, many = (estimate(game, method, budget=b, seed=seed) for b in (120, 8000))
    # Against its own standard error: games whose values happen to be small are hard relative to them.
    deviation = (many.values - truth).square().mean(1).sqrt()
    usual = many.standard_errors.square().mean(1).sqrt()
    assert (deviation < 3 * usual + 1e-6).all()
    assert relative_error(many, truth) <= max(relative_error(few, truth), 1e-6)
    away = (many.values - truth).abs() - 1e-6
    # A player's own error comes from few groups of samples and may be far too small by chance.
    assert (away <= 5 * many.standard_errors.maximum(usual[:, None])).all()


@pytest.mark.parametrize("method", [*SAMPLING, "exact"])
def test_completeness(method):
    result = estimate(network_game(seed=3), method, budget=None if method == "exact" else 400)
    assert torch.allclose(result.values.sum(1), result.total, atol=1e-5)


@pytest.mark.parametrize("method", SAMPLING)
def test_the_gap_is_the_one_before_redistribution(method):
    options = {"nodes": 4} if method == "owen" else {}
    result = estimate(network_game(seed=3, windows=3), method, budget=600, **options)
    if method in {"kernel", "owen", "adaptive_owen"}:
        assert result.completeness_gap.abs().max() > 1e-9
    elif method == "permutation":  # every order adds up
        assert result.completeness_gap.abs().max() < 1e-5


@pytest.mark.parametrize("method", [*SAMPLING, "exact"])
def test_dummies_get_nothing(method):
    torch.manual_seed(0)
    table = random_table(8)
    digits = 2 ** torch.arange(8)
    game = mask_game(lambda m: table[(m[:, :8] * digits).sum(1)], 11)  # players 8, 9, 10 do nothing
    result = estimate(game, method, budget=6000)
    assert (result.values[:, 8:].abs() <= 4 * result.standard_errors[:, 8:] + 1e-6).all()
    assert result.values[:, 8:].abs().max() < 0.1 * result.values.abs().max()
    if method in {"permutation", "exact"}:
        assert result.values[:, 8:].abs().max() < 1e-6


@pytest.mark.parametrize("method", [*SAMPLING, "exact"])
def test_symmetric_players_get_the_same(method):
    def function(masks):
        pair = masks[:, 0].double() + masks[:, 1].double()  # 0 and 1 are interchangeable
        return torch.stack([pair**2 * (1 + masks[:, 2]), pair - masks[:, 3:].sum(1) ** 1.5 / 3], 1)

    result = estimate(mask_game(function, 10), method, budget=900 if method != "exact" else None)
    error = (result.standard_errors[:, 0] ** 2 + result.standard_errors[:, 1] ** 2).sqrt()
    assert ((result.values[:, 0] - result.values[:, 1]).abs() <= 4 * error + 1e-6).all()


@pytest.mark.parametrize("method", ["permutation", "kernel", "owen", "exact"])
def test_linearity_holds_sample_by_sample(method):
    image = torch.randn(3, 12, 12, generator=torch.Generator().manual_seed(0))
    players = Players.windows((12, 12), 4)
    torch.manual_seed(2)
    model = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(100, 2)).eval()

    def combined(images):
        y = model(images).double()
        return torch.cat([y, (2 * y[:, 0] - 3 * y[:, 1])[:, None]], 1)

    budget = None if method == "exact" else 400
    values = estimate(Game(combined, image, players), method, budget=budget).values
    assert torch.allclose(values[2], 2 * values[0] - 3 * values[1], atol=1e-6)


def interacting_game(seed, n=40, strength=1.0):
    """Main effects, pair and triple interactions whose Shapley values are known: each shared equally."""
    generator = torch.Generator().manual_seed(seed)
    main = torch.randn(n, generator=generator, dtype=torch.float64)
    main *= torch.rand(n, generator=generator) < 0.4
    draw = lambda k: torch.stack([torch.randperm(n, generator=generator)[:k] for _ in range(60)])  # noqa: E731
    pairs, triples = draw(2), draw(3)
    weight = strength * torch.randn(2, 60, generator=generator, dtype=torch.float64)
    truth = main.clone()
    for group, amount in ((pairs, weight[0]), (triples, weight[1])):
        for column in group.T:
            truth.index_add_(0, column, amount / group.shape[1])

    def function(masks):
        x = masks.double()
        return x @ main + x[:, pairs].prod(-1) @ weight[0] + x[:, triples].prod(-1) @ weight[1]

    return mask_game(function, n), truth[None]


@pytest.mark.parametrize("method", SAMPLING)
@pytest.mark.parametrize("strength", [0.3, 2.0])
def test_intervals_cover_the_truth_as_often_as_they_say(method, strength):
    covered, wider, total = 0, 0, 0
    for seed in range(16):
        game, truth = interacting_game(seed, strength=strength)
        result = estimate(game, method, budget=800, seed=seed)
        low, high = result.interval(0.95)
        covered += int(((low <= truth) & (truth <= high)).sum())
        low, high = result.interval(0.5)
        wider += int(((low <= truth) & (truth <= high)).sum())
        total += truth.numel()
    assert 0.91 <= covered / total <= 0.99
    assert 0.42 <= wider / total <= 0.65


def test_the_default_beats_plain_owen_sampling():
    def network(seed):
        torch.manual_seed(seed)
        return nn.Sequential(
            *(
                nn.Conv2d(1, 8, 3, padding=1),
                nn.ReLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(8, 8, 3, padding=1),
                nn.ReLU(),
            ),
            *(nn.AdaptiveMaxPool2d(2), nn.Flatten(), nn.Linear(32, 3)),
        ).eval()

    better = []
    for seed in range(2):
        image = torch.randn(1, 20, 20, generator=torch.Generator().manual_seed(seed)).cumsum(1) / 2
        game = Game(network(seed), image, Players.windows((20, 20), 4))
        truth = estimate(game, "owen", budget=30000, seed=99).values
        results = [estimate(game, method, budget=800, seed=1) for method in ("adaptive_owen", "owen")]
        errors = [relative_error(result, truth) for result in results]
        better.append(errors[0] / errors[1])
    assert sum(better) / 2 < 0.75

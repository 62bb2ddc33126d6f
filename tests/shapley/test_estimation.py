import math

import pytest
import torch
from torch import nn

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import ESTIMATORS, Game, estimate, relative_error
from protopfaith.shapley.estimation import LARGEST_BUDGET, check_plan, finish

from .games import SAMPLING, mask_game, network_game, random_table, table_game


@pytest.mark.parametrize("method", SAMPLING)
def test_the_same_seed_gives_the_same_result(method):
    first, second = (estimate(network_game(), method, budget=300, seed=7) for _ in range(2))
    assert torch.equal(first.values, second.values)
    assert not torch.equal(first.values, estimate(network_game(), method, budget=300, seed=8).values)


@pytest.mark.parametrize("method", SAMPLING)
def test_the_budget_is_kept_and_counted(method):
    game = network_game(check=False)
    before = game.evaluations
    result = estimate(game, method, budget=500)
    assert 400 <= result.evaluations <= 500
    assert game.evaluations - before == result.evaluations - 2  # the two ends are the game's


@pytest.mark.parametrize("method", SAMPLING)
def test_a_run_can_be_continued(method):
    game = network_game(windows=3)
    truth = estimate(game, "exact").values
    short = estimate(game, method, budget=300, seed=1)
    before = game.evaluations
    long = estimate(game, method, budget=6000, resume=short)
    assert game.evaluations - before == long.evaluations - short.evaluations
    assert long.evaluations > 5900
    assert long.precision < short.precision / 2
    assert (long.values - truth).square().mean() < (short.values - truth).square().mean()
    again = estimate(game, method, budget=6000, resume=short)
    assert torch.equal(long.values, again.values)


@pytest.mark.parametrize("method", SAMPLING)
def test_a_precision_is_reached_and_then_it_stops(method):
    game = network_game(windows=3)
    result = estimate(game, method, precision=0.15)
    assert result.reached
    assert result.precision <= 0.15
    tighter = estimate(game, method, precision=0.01)
    assert tighter.reached
    assert tighter.evaluations > result.evaluations


@pytest.mark.parametrize("method", SAMPLING)
def test_a_precision_that_the_budget_cannot_reach_is_said(method):
    result = estimate(network_game(), method, budget=300, precision=1e-6)
    assert not result.reached
    assert result.precision > 1e-6
    assert result.evaluations <= 300


@pytest.mark.parametrize("method", SAMPLING)
def test_the_result_carries_what_is_needed_to_judge_it(method):
    game = network_game(baseline="blur")
    result = estimate(game, method, budget=300, seed=5)
    assert (result.method, result.seed, result.baseline) == (method, 5, "blur")
    assert torch.allclose(result.total, game.total)
    assert result.completeness_gap.shape == (3,)
    assert result.standard_errors.shape == result.values.shape == (3, 9)
    assert (result.standard_errors > 0).all()


def test_one_player_takes_the_total():
    game = table_game(random_table(1))
    for method in [*SAMPLING, "exact", "default"]:
        result = estimate(game, method, budget=50)
        assert torch.allclose(result.values[:, 0], game.total)


@pytest.mark.parametrize("method", SAMPLING)
def test_what_the_caller_computes_in_changes_nothing(method):
    plain = estimate(network_game(), method, budget=300, seed=3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = estimate(network_game(), method, budget=300, seed=3)
    assert torch.equal(plain.values, inside.values)


def test_progress_is_reported():
    seen = []
    estimate(
        network_game(),
        "owen",
        budget=4000,
        precision=1e-3,
        progress=lambda done, most: seen.append((done, most)),
    )
    assert seen[-1] == (4000, 4000)
    assert len(seen) > 2


def test_the_bar_is_drawn_on_standard_error(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a terminal
    estimate(network_game(), "owen", budget=200, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "evaluations" in err
    assert "/200" in err


def nearly_constant_game():
    """An output that anyone could explain, and one that is almost constant: little but interaction."""
    model = network_game(windows=3, outputs=1)

    def function(images):
        flat = images.flatten(1)
        return torch.stack([model.function(images)[:, 0], 100 + 1e-3 * torch.sin(40 * flat.sum(1))], 1)

    return Game(function, model.image, model.players)


@pytest.mark.parametrize("method", SAMPLING)
def test_only_the_chosen_outputs_decide_when_to_stop(method):
    game = nearly_constant_game()
    chosen = estimate(game, method, precision=0.1, budget=6000, outputs=[0])
    every = estimate(game, method, precision=0.1, budget=6000)
    assert chosen.reached
    assert chosen.evaluations < every.evaluations
    assert not every.reached
    assert chosen.precision == pytest.approx(relative_error(chosen.values[:1], chosen.standard_errors[:1]))
    assert every.precision > 0.1
    assert chosen.standard_errors.shape == (2, 16)  # the others' come all the same
    assert estimate(game, method, precision=0.1, budget=6000, outputs=[0], resume=every).reached


def test_few_samples_of_many_players_do_not_look_precise():
    """A complement tells kernel regression nothing new: it takes as many pairs as there are players."""
    n = 300
    weights = torch.rand(n, generator=torch.Generator().manual_seed(0)).double()
    result = estimate(mask_game(lambda masks: masks.double() @ weights, n), "kernel", precision=0.5)
    assert torch.allclose(result.values[0], weights, atol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"method": "owenn"}, "did you mean 'owen'"),
        ({"budget": 0}, "at least one"),
        ({"budget": 600.0}, "a whole number, not 600.0"),
        ({"outputs": 1}, "give them as a list"),
        ({"precision": 0.0}, "above zero"),
        ({"precision": math.nan}, "a finite number"),
        ({"method": "owen", "notes": 3}, "did you mean 'nodes'"),
        ({"method": "owen", "nodes": 0}, "at least one"),
        ({"method": "permutation", "budget": 10}, "too small"),
        ({"method": "kernel", "budget": 10}, "too small"),
        (
            {"method": "dasp", "sizes": "many"},
            "'sizes' of the estimator 'dasp' is a whole number, not 'many'",
        ),
        ({"method": "moment_path", "nodes": 8.5}, "a whole number, not 8.5"),
        ({"shrinkage": "no"}, "'shrinkage' of the estimator 'adaptive_owen' is true or false, not 'no'"),
        ({"outputs": []}, "from 0 to 2"),
        ({"outputs": [0, 3]}, "from 0 to 2"),
    ],
)
def test_bad_plans_are_refused_in_one_sentence(arguments, complaint):
    with pytest.raises(ProtoPFaithError, match=complaint):
        estimate(network_game(), **arguments)


@pytest.mark.parametrize(("method", "n"), [("kernel", 1950), ("permutation", 2100)])
def test_too_small_a_budget_is_refused_with_one_that_suffices(method, n):
    game = mask_game(lambda masks: masks.double().sum(1, keepdim=True), n)
    with pytest.raises(ProtoPFaithError, match="give a budget of at least") as refused:
        estimate(game, method)
    enough = int(str(refused.value).rstrip(".").split()[-1])
    with pytest.raises(ProtoPFaithError, match="too small"):
        estimate(game, method, budget=enough - 1)
    if method == "permutation":  # the others' equations take a minute
        assert torch.allclose(estimate(game, method, budget=enough).values, torch.ones(1, n).double())


def test_only_the_same_game_can_be_continued():
    first = estimate(network_game(), "owen", budget=100)
    with pytest.raises(ProtoPFaithError, match="another game"):
        estimate(network_game(seed=5), "owen", resume=first)
    with pytest.raises(ProtoPFaithError, match="another game"):
        estimate(network_game(windows=6), "owen", resume=first)
    with pytest.raises(ProtoPFaithError, match="cannot be continued"):
        estimate(network_game(), "permutation", resume=first)
    with pytest.raises(ProtoPFaithError, match="without its state"):
        estimate(network_game(), "owen", resume=first.without_state())


def test_very_few_players_need_few_evaluations():
    game = table_game(random_table(2))
    with pytest.raises(ProtoPFaithError, match="give a budget of at least 4, which solves the game exactly"):
        estimate(game, budget=3)
    assert not estimate(game, budget=4).standard_errors.any()


def test_enumeration_is_taken_where_it_is_cheaper():
    game = table_game(random_table(13))
    before = game.evaluations
    result = estimate(game, precision=0.001)
    assert result.reached
    assert not result.standard_errors.any()
    assert game.evaluations - before <= 1.25 * 2**13
    easy = table_game(torch.arange(2**13).double()[:, None])
    assert estimate(easy, precision=0.5).evaluations < 2**13 / 2


@pytest.mark.parametrize("n", [13, 16, 18, 20])
def test_sampling_is_tried_before_enumeration(n):
    weights = torch.arange(1.0, n + 1)
    easy = mask_game(lambda masks: (masks.float() @ weights)[:, None].sqrt(), n)
    result = estimate(easy, precision=0.3)
    assert result.reached
    assert result.evaluations <= 2**n / 4
    assert result.standard_errors.any()


@pytest.mark.parametrize("method", SAMPLING)
def test_an_output_that_is_constant_is_known_at_once(method):
    model = network_game(windows=3, outputs=1)

    def function(images):
        return torch.stack([model.function(images)[:, 0], torch.full((len(images),), 3.7)], 1)

    result = estimate(Game(function, model.image, model.players), method, precision=0.2, budget=6000)
    assert result.reached
    assert result.evaluations < 3000


@pytest.mark.parametrize("method", SAMPLING)
def test_a_result_that_is_resumed_equals_one_that_went_there_in_one_go(method):
    game = network_game(windows=2)
    straight = estimate(game, method, budget=2500, seed=4)
    resumed = estimate(game, method, budget=700, seed=4)
    for budget in (1300, 2500):
        resumed = estimate(game, method, budget=budget, resume=resumed)
    # The mean that owen subtracts is that of the samples so far, which depends on where it stopped.
    tolerance = 0.02 if method == "owen" else 1e-5
    size = float(straight.values.abs().max())
    assert resumed.evaluations == straight.evaluations
    assert torch.allclose(resumed.values, straight.values, rtol=0, atol=tolerance * size)


def test_a_budget_may_be_larger_than_what_a_precision_alone_ends_at():
    check_plan(10 * LARGEST_BUDGET, None)
    check_plan(10 * LARGEST_BUDGET, 0.1)
    with pytest.raises(ProtoPFaithError, match="budget"):
        check_plan(10**15, None)


def _raises(game, **plan):
    return {}["coalition"]


def _gives_nothing(game, **plan):
    return None


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (_raises, r"The estimator 'mine' fails with KeyError: 'coalition' \(line"),
        (_gives_nothing, "What the estimator 'mine' gives must be an Attribution, not None"),
    ],
)
def test_an_estimator_of_somebody_else_that_fails_is_told_as_that(estimator, words, monkeypatch):
    monkeypatch.setitem(ESTIMATORS, "mine", estimator)
    game = Game(lambda x: x.flatten(1).sum(1), torch.rand(1, 8, 8), 4)
    with pytest.raises(ProtoPFaithError, match=words):
        estimate(game, "mine", budget=100)


@pytest.mark.parametrize("scale", [1e-13, 1e-9, 1e9])
def test_how_large_an_output_is_does_not_change_what_is_known_of_it(scale: float) -> None:
    weights = torch.linspace(-1, 1, 64, dtype=torch.float64)

    def bent(images: torch.Tensor) -> torch.Tensor:
        return (3 * images.flatten(1) @ weights).sin()

    image = torch.ones(1, 8, 8, dtype=torch.float64)
    usual = estimate(Game(bent, image, 1), precision=0.05, budget=2_000)
    scaled = estimate(Game(lambda x: scale * bent(x), image, 1), precision=0.05, budget=2_000)
    assert not usual.reached
    assert (scaled.reached, scaled.evaluations) == (usual.reached, usual.evaluations)
    assert scaled.precision == pytest.approx(usual.precision, rel=1e-3)


def test_a_small_output_is_not_known_for_being_beside_a_large_one() -> None:
    weights = torch.linspace(-1, 1, 64, dtype=torch.float64)

    def both(images: torch.Tensor) -> torch.Tensor:
        return torch.stack([1e6 * images.mean((1, 2, 3)), (3 * images.flatten(1) @ weights).sin() / 100], 1)

    found = estimate(Game(both, torch.ones(1, 8, 8, dtype=torch.float64), 1), precision=0.05, budget=2_000)
    assert not found.reached
    assert found.precision == pytest.approx(relative_error(found.values[1:], found.standard_errors[1:]))


@pytest.mark.parametrize(("value", "error"), [(math.nan, 0.0), (math.inf, 1.0), (1.0, -1.0)])
def test_an_estimator_that_gives_no_numbers_is_told(value, error):
    game = Game(lambda x: x.flatten(1).sum(1), torch.ones(1, 2, 2), 1)
    with pytest.raises(ProtoPFaithError, match="correct what the estimator gives"):
        finish(game, "guess", torch.full((1, 4), value), torch.full((1, 4), error), evaluations=1)


@pytest.mark.parametrize("method", ["exact", "dasp", "moment_path"])
def test_what_takes_more_than_the_budget_is_refused(method):
    game = Game(nn.Sequential(nn.Flatten(), nn.Linear(4, 1)), torch.ones(1, 2, 2), 1)
    with pytest.raises(ProtoPFaithError, match=r"evaluations.* and the budget is 5"):
        estimate(game, method, budget=5)
    assert estimate(game, method, budget=40).evaluations <= 40

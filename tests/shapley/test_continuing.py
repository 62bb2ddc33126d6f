"""Going on from a result: it stays as it is, and only its own game and options can go on with it."""

from __future__ import annotations

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import ESTIMATORS, Attribution, Game, Players, estimate

from .games import SAMPLING, network, network_game, random_table, table_game

IMAGE = torch.randn(3, 12, 12, generator=torch.Generator().manual_seed(1))
PLAYERS = Players.windows((12, 12), 3)


def begun(game: Game, method: str, **options) -> Attribution:
    if method == "dasp":
        options = {"stop_after": 3, "sizes": 3, **options}
    return estimate(game, method, budget=None if method == "exact" else 300, **options)


CONTINUED = [
    name for name in sorted(ESTIMATORS) if begun(Game(network(), IMAGE, PLAYERS), name).state is not None
]


def test_everything_that_samples_can_be_continued():
    assert set(SAMPLING) <= set(CONTINUED)


@pytest.mark.parametrize("method", CONTINUED)
def test_a_result_can_be_continued_twice(method):
    game = Game(network(), IMAGE, PLAYERS)
    result = begun(game, method)
    before = {name: tensor.clone() for name, tensor in result.state.items()}
    first, second = (estimate(game, method, budget=900, resume=result) for _ in range(2))
    assert not torch.equal(first.values, result.values)
    assert torch.equal(first.values, second.values)
    assert torch.equal(first.standard_errors.nan_to_num(), second.standard_errors.nan_to_num())
    for name, tensor in before.items():
        assert torch.equal(result.state[name], tensor), name


@pytest.mark.parametrize(
    ("method", "made", "other"),
    [
        ("adaptive_owen", {"surrogate": False}, {"surrogate": True}),
        ("adaptive_owen", {}, {"surrogate": False}),
        ("adaptive_owen", {}, {"allocation": False}),
        ("dasp", {}, {"first_layer": "pixels"}),
        ("dasp", {}, {"sizes": 4}),
        ("dasp", {}, {"factors": 2}),
        ("owen", {"nodes": 4}, {"nodes": 5}),
        ("owen", {"nodes": 4}, {"nodes": None}),
        ("owen", {}, {"nodes": 4}),
    ],
)
def test_other_options_than_those_it_was_made_with_are_refused(method, made, other, tmp_path):
    game = Game(network(), IMAGE, PLAYERS)
    begun(game, method, **made).save(tmp_path / "begun.npz")
    result = Attribution.load(tmp_path / "begun.npz")
    (name,) = other
    with pytest.raises(ProtoPFaithError, match=f"was made with {name}="):
        estimate(game, method, budget=900, resume=result, **other)
    same = {name: made.get(name, result.options.get(name))} if made or name in result.options else {}
    on = estimate(game, method, budget=900, resume=result, **same)
    assert on.options == result.options


@pytest.mark.parametrize(
    ("method", "free"),
    [
        ("adaptive_owen", {"shrinkage": False}),
        ("dasp", {"batch_size": 4, "stop_after": 1, "fuse": False}),
    ],
)
def test_options_that_do_not_touch_the_sums_may_change(method, free):
    game = Game(network(), IMAGE, PLAYERS)
    result = begun(game, method)
    on = estimate(game, method, budget=900, resume=result, **free)
    assert on.evaluations > result.evaluations
    if method == "adaptive_owen":
        shrunk = estimate(game, method, budget=900, resume=result)
        back = estimate(game, method, budget=900, resume=on, shrinkage=True)
        assert not torch.equal(on.values, shrunk.values)
        assert torch.allclose(back.values, shrunk.values)


def shaded(images):
    """Nearly constant, as distances far from everything are: its values on any two images are similar."""
    return 100 + 0.01 * network()(images)


@pytest.mark.parametrize("function", [network(), shaded])
@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"baseline": 0.2}, "baselines"),
        ({"baseline": "blur:2"}, "baselines"),
        ({"baseline": IMAGE.flip(0)}, "baselines"),
        ({"image": IMAGE.flip(2)}, "images"),
        ({"image": IMAGE.flip(0)}, "images"),  # channels the other way round
        ({"image": IMAGE + 0.1}, "images"),
        ({"players": Players.windows((12, 12), 4)}, "players"),
    ],
)
def test_another_image_or_baseline_is_refused(function, other, what):
    game = {"image": IMAGE, "players": PLAYERS, "baseline": "zero"}
    result = begun(Game(function, **game), "owen")
    with pytest.raises(ProtoPFaithError, match=rf"another game \(the {what} differ\)"):
        estimate(Game(function, **{**game, **other}), "owen", budget=900, resume=result)


def test_another_function_is_refused():
    result = begun(Game(network(), IMAGE, PLAYERS), "owen")
    model = network()
    with torch.no_grad():
        model[-1].weight[1] *= 1.05  # one output of three, a little
    with pytest.raises(ProtoPFaithError, match="the function's values"):
        estimate(Game(model, IMAGE, PLAYERS), "owen", budget=900, resume=result)
    with pytest.raises(ProtoPFaithError, match="outputs"):
        estimate(Game(network(outputs=2), IMAGE, PLAYERS), "owen", budget=900, resume=result)


def test_an_exact_result_of_another_game_is_refused():
    result = estimate(table_game(random_table(6)), budget=100)
    assert estimate(table_game(random_table(6)), resume=result) is result
    with pytest.raises(ProtoPFaithError, match="another game"):
        estimate(table_game(random_table(6, seed=1)), resume=result)


@pytest.mark.parametrize("option", [{"batch_size": 3}, {"autocast": torch.bfloat16}, {"check": False}])
def test_the_same_game_played_otherwise_goes_on(option):
    result = estimate(network_game(), "owen", budget=300)
    on = estimate(network_game(**option), "owen", budget=600, resume=result)
    assert on.evaluations == 600
    back = estimate(network_game(), "owen", budget=900, resume=on)
    assert back.evaluations == 900


def test_the_same_baseline_under_another_name_goes_on():
    result = estimate(network_game(baseline="zero"), "owen", budget=300)
    assert estimate(network_game(baseline=0.0), "owen", budget=600, resume=result).evaluations == 600

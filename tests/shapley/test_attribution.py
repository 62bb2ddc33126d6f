import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import Attribution, estimate, redistribute, relative_error
from protopfaith.specs import DEFAULT_METHOD

from .games import SAMPLING, mask_game, network_game


def test_saved_and_loaded_it_is_the_same_and_can_be_continued(tmp_path):
    game = network_game()
    first = estimate(game, "owen", budget=200, seed=3)
    first.save(tmp_path / "a.npz")
    loaded = Attribution.load(tmp_path / "a.npz")
    for name in ("values", "standard_errors", "completeness_gap", "total"):
        assert torch.equal(getattr(loaded, name), getattr(first, name))
    for name in ("evaluations", "baseline", "method", "seed", "precision", "reached", "options"):
        assert getattr(loaded, name) == getattr(first, name)
    assert torch.equal(loaded.players.labels, first.players.labels)
    assert loaded.players.kind == first.players.kind
    straight = estimate(game, "owen", budget=400, resume=first)
    again = estimate(game, "owen", budget=400, resume=loaded)
    assert torch.equal(straight.values, again.values)


def test_a_game_and_its_players_show_themselves_in_one_line():
    game = network_game()
    assert repr(game.players) == "Players(9 players (windows 4x4), 12 x 12 pixels)"
    assert repr(game).startswith(
        "Game(3 outputs, 9 players (windows 4x4), image 3 x 12 x 12 on cpu, baseline"
    )
    assert "\n" not in repr(game)


def test_it_shows_itself_in_one_line():
    found = estimate(network_game(), "owen", budget=200)
    shown = repr(found)
    assert "\n" not in shown
    assert len(shown) < 300
    assert f"{found.evaluations:,} evaluations" in shown
    assert found.players.description in shown
    assert f"precision {found.precision:.3g}," in shown


@pytest.mark.parametrize(("method", "options"), [("dasp", {"sizes": 2}), ("moment_path", {"nodes": 2})])
def test_a_precision_that_nobody_knows_is_shown_as_unknown(method, options):
    assert "precision unknown," in repr(estimate(network_game(), method, **options))


def test_a_file_that_is_none_is_said(tmp_path):
    (tmp_path / "a.npz").write_text("nothing")
    with pytest.raises(ProtoPFaithError, match="not a readable attribution"):
        Attribution.load(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", values=np.zeros(3))
    with pytest.raises(ProtoPFaithError, match="not a readable attribution"):
        Attribution.load(tmp_path / "b.npz")
    estimate(network_game(), "owen", budget=100).save(tmp_path / "c.npz")
    whole = (tmp_path / "c.npz").read_bytes()
    (tmp_path / "c.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ProtoPFaithError, match="not a readable attribution"):
        Attribution.load(tmp_path / "c.npz")


def test_intervals_widen_with_few_degrees_of_freedom():
    result = estimate(network_game(), "permutation", budget=100)
    low, high = result.interval()
    assert result.degrees_of_freedom < 10
    assert ((high - low) / result.standard_errors).min() > 2 * 2.2
    normal = estimate(network_game(), "owen", budget=100).interval()
    wider = estimate(network_game(), "owen", budget=100).interval(0.99)
    assert (wider[1] > normal[1]).all()


def test_maps_have_the_image_size():
    assert estimate(network_game(), "exact").maps().shape == (3, 12, 12)


def test_relative_error_is_that_of_the_worst_output():
    values = torch.tensor([[3.0, 4.0], [1.0, 1.0]])
    errors = torch.tensor([[0.3, 0.4], [0.5, 0.5]])
    assert relative_error(values, errors) == pytest.approx(0.5)
    assert relative_error(torch.zeros(1, 2), torch.zeros(1, 2)) == 0
    assert relative_error(values, errors * math.nan) == math.inf
    assert relative_error(torch.zeros(1, 2), torch.ones(1, 2)) == math.inf


def test_redistribution_is_the_projection_onto_the_total():
    torch.manual_seed(0)
    values, variances, total = torch.randn(2, 5).double(), torch.rand(2, 5).double(), torch.randn(2).double()
    moved, left = redistribute(values, variances, total)
    assert torch.allclose(moved.sum(1), total)
    for row in range(2):
        # Condition a Gaussian with this diagonal covariance on its sum.
        covariance, ones = torch.diag(variances[row]), torch.ones(5, 1).double()
        gain = covariance @ ones / (ones.T @ covariance @ ones)
        expected = values[row] - gain[:, 0] * (values[row].sum() - total[row])
        assert torch.allclose(moved[row], expected)
        assert torch.allclose(left[row], (covariance - gain @ ones.T @ covariance).diagonal())


def test_redistribution_without_errors_shares_equally():
    moved, _ = redistribute(torch.zeros(1, 4), torch.zeros(1, 4), torch.tensor([2.0]))
    assert moved.tolist() == [[0.5] * 4]


def decided_share(result, truth):
    decided = result.decided()
    wrong = decided & (result.values.sign() != truth.sign())
    return int(decided.sum()), int(wrong.sum())


@pytest.mark.parametrize("method", SAMPLING)
def test_of_the_decided_players_few_have_the_wrong_sign(method):
    weights = torch.zeros(60, dtype=torch.float64)
    weights[:20] = torch.randn(20, generator=torch.Generator().manual_seed(0)).double()
    game = mask_game(lambda m: m.double() @ weights + 2 * (m.sum(1) % 7 == 0), 60)
    truth = torch.where(weights.abs() > 0, weights, 0)[None]
    counts = [decided_share(estimate(game, method, budget=700, seed=seed), truth) for seed in range(10)]
    decided, wrong = (sum(column) for column in zip(*counts, strict=True))
    if method == DEFAULT_METHOD:  # others may know little of so few samples
        assert decided >= 20
    assert wrong <= 0.1 * decided


@pytest.mark.parametrize("seed", range(5))
def test_decided_players_by_the_slow_rule(seed):
    """The most players whose mean chance is at most half the rate, a few counting for more."""
    result = estimate(network_game(), "adaptive_owen", budget=300)
    generator = torch.Generator().manual_seed(seed)
    chances = torch.rand(result.values.shape, generator=generator, dtype=torch.float64).pow(6 + 2 * seed)
    ones = torch.ones_like(result.values)
    result = replace(result, wrong_signs=chances, values=ones, standard_errors=0.1 * ones)
    for row, found in zip(chances.tolist(), result.decided(), strict=True):
        most = 0
        for count in range(1, len(row) + 1):
            mean = sum(sorted(row)[:count]) / count
            if mean * max(1, 10 / count) <= 0.025:
                most = count
        expected = [chance in sorted(row)[:most] and chance <= 0.1 for chance in row]
        assert found.tolist() == expected


def test_a_player_s_own_error_bar_has_a_say() -> None:
    """Chances come from the posterior alone; standard errors allow for more."""
    result = estimate(network_game(), "adaptive_owen", budget=300)
    ones = torch.ones_like(result.values)
    for bar, known in ((0.7, True), (0.9, False)):  # 1.28 standard errors leave one chance in ten
        sure = replace(result, wrong_signs=1e-6 * ones, values=ones, standard_errors=bar * ones)
        assert bool((sure.decided() == known).all())


def test_next_to_nothing_is_decided_in_maps_of_nothing() -> None:
    """Benjamini and Hochberg alone decide some player in 5% of such maps, each time wrongly."""
    some = estimate(network_game(windows=1), "owen", budget=400)
    normal = torch.randn(4000, some.values.shape[1], generator=torch.Generator().manual_seed(0)).double()
    row = torch.zeros(4000, dtype=torch.float64)
    maps = replace(
        some, values=normal, standard_errors=torch.ones_like(normal), completeness_gap=row, total=row
    )
    assert 0 < float(maps.decided().any(1).double().mean()) < 0.01
    assert float(replace(maps, values=normal + 6).decided().double().mean()) > 0.95


def test_nothing_is_decided_where_errors_are_unknown():
    assert not estimate(network_game(), "dasp", sizes=2).decided().any()
    assert not estimate(network_game(), "permutation", budget=20).decided().any()  # one pair


def test_a_smaller_rate_decides_less(tmp_path):
    result = estimate(network_game(windows=1), "adaptive_owen", budget=400)
    strict, loose = result.decided(0.01), result.decided(0.2)
    assert (loose | ~strict).all()
    assert int(strict.sum()) < int(loose.sum())
    result.save(tmp_path / "a.npz")
    assert torch.equal(Attribution.load(tmp_path / "a.npz").decided(0.2), loose)


def test_rows_of_some_outputs_decide_as_they_did():
    result = estimate(network_game(windows=1), "adaptive_owen", budget=400)
    some = result.of_outputs([2, 0])
    assert torch.equal(some.decided(), result.decided()[[2, 0]])
    assert torch.equal(some.total, result.total[[2, 0]])


def test_no_error_is_below_zero():
    with pytest.raises(ProtoPFaithError, match="is -1; give numbers of at least zero"):
        relative_error(torch.ones(1, 3), -torch.ones(1, 3))

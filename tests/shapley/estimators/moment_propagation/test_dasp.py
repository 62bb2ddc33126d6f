import pytest
import torch
from torch import nn
from torch.nn import functional as F

from protopfaith.errors import ProtoPFaithError
from protopfaith.moments import Gaussian
from protopfaith.shapley import Attribution, Game, Players, estimate
from protopfaith.shapley.estimators.moment_propagation.dasp import coalition_sizes
from tests.shapley.estimators.moment_propagation.networks import counterexample, network

PLAYERS = {
    "windows": Players.windows((9, 9), 3),
    "whole receptive fields": Players.windows((9, 9), 5),
    "channels apart": Players.windows((9, 9), 3, channels=2),
    "any shape": Players(torch.randint(0, 6, (9, 9), generator=torch.Generator().manual_seed(1))),
}


def game(players, seed=0, baseline=0.3, **options):
    image = torch.randn(2, 9, 9, generator=torch.Generator().manual_seed(seed))
    return Game(network(), image, players, baseline, **options)


def literal(game, first, rest, sizes):
    """DASP word by word, in float64: every player's contribution to the first layer, one size at a time."""
    first, rest = first.double(), rest.double()
    labels, change, n = game.players.labels, (game.image - game.baseline).double(), game.n_players - 1
    start = first(game.baseline[None].double())[0]
    kind = {"stride": first.stride, "padding": first.padding}
    c = torch.stack([F.conv2d((change * (labels == i))[None], first.weight, **kind)[0] for i in range(n + 1)])
    values = torch.zeros(game.n_outputs, n + 1, dtype=torch.float64)
    for i in range(n + 1):
        others = torch.cat([c[:i], c[i + 1 :]])
        for d in sizes.tolist():
            mean = start + d * others.mean(0)
            variance = d * (n - d) / max(n - 1, 1) * (others.square().mean(0) - others.mean(0).square())
            variance = variance.clamp_min(0)[None]
            present = rest(Gaussian((mean + c[i])[None], variance)).mean[0]
            absent = rest(Gaussian(mean[None], variance)).mean[0]
            values[:, i] += (present - absent) / len(sizes)
    return values


@pytest.mark.parametrize("kind", PLAYERS)
@torch.no_grad()
def test_equals_the_literal_method(kind):
    one = game(PLAYERS[kind])
    result = estimate(one, "dasp", sizes=5)
    slow = network()
    expected = literal(one, slow[0], slow[1:], coalition_sizes(one.n_players, 5))
    assert torch.allclose(result.values, expected, atol=1e-5 * float(expected.abs().max()))
    assert bool(torch.isnan(result.standard_errors).all())
    assert result.evaluations == 2 * one.n_players * len(coalition_sizes(one.n_players, 5))


def test_autocast_of_the_game_does_not_reach_the_passes():
    full, reduced = (game(PLAYERS["windows"], autocast=dtype) for dtype in (None, torch.bfloat16))
    assert not torch.equal(full.grand, reduced.grand)  # autocast does happen elsewhere
    assert torch.equal(*(estimate(one, "dasp", sizes=3).values for one in (full, reduced)))


def test_sizes_run_from_nobody_to_everybody_else():
    assert coalition_sizes(100, 4).tolist() == [0, 33, 66, 99]
    assert coalition_sizes(4, 32).tolist() == [0, 1, 2, 3]
    assert coalition_sizes(3, 3).tolist() == [0, 1, 2]


@pytest.mark.parametrize("batch_size", [2, 10, 64])
def test_batches_do_not_matter(batch_size):
    one = game(PLAYERS["any shape"])
    whole, parts = estimate(one, "dasp", sizes=5), estimate(one, "dasp", sizes=5, batch_size=batch_size)
    assert torch.allclose(whole.values, parts.values, atol=1e-6)


def test_a_memory_bound_is_kept():
    bounded = game(PLAYERS["windows"], memory=1_000_000)
    assert torch.allclose(
        estimate(bounded, "dasp", sizes=3).values,
        estimate(game(PLAYERS["windows"]), "dasp", sizes=3).values,
        atol=1e-6,
    )


def test_can_be_continued(tmp_path):
    one = game(PLAYERS["any shape"])
    whole = estimate(one, "dasp", sizes=5)
    part = estimate(one, "dasp", sizes=5, stop_after=2, checkpoint=tmp_path / "part.npz")
    assert torch.isnan(part.values[0]).tolist() == [False, False, True, True, True, True]
    assert not part.reached
    loaded = Attribution.load(tmp_path / "part.npz")
    rest = estimate(one, "dasp", resume=loaded)
    assert torch.allclose(rest.values, whole.values, atol=1e-7)
    assert rest.reached
    assert rest.evaluations == whole.evaluations
    with pytest.raises(ProtoPFaithError, match="sizes=5"):
        estimate(one, "dasp", sizes=4, resume=loaded)


def test_an_interruption_keeps_what_is_done(tmp_path):
    one = game(PLAYERS["any shape"])

    def interrupt(done, most):
        if done >= most / 2:
            raise KeyboardInterrupt

    file = tmp_path / "part.npz"
    with pytest.raises(KeyboardInterrupt):
        estimate(one, "dasp", sizes=6, batch_size=2, progress=interrupt, checkpoint=file)
    part = Attribution.load(file)
    assert 0 < int(torch.isnan(part.values[0]).sum()) < 6
    assert torch.allclose(
        estimate(one, "dasp", resume=part).values, estimate(one, "dasp", sizes=6).values, atol=1e-6
    )


def test_the_counterexample_of_the_paper():
    """The up-scaled latent map points at the bottom right; the one pixel that matters is at the top left."""
    image = torch.zeros(1, 3, 3)
    image[0, 0, 0] = 1
    net = counterexample()
    latent = net(image[None])
    upscaled = F.interpolate(latent, size=(3, 3), mode="bilinear")[0, 0]
    assert upscaled.argmax() == 8
    one = Game(lambda x: net(x).flatten(1), image, Players.windows((3, 3), 1))
    for method in ("dasp", "moment_path"):
        values = estimate(one, method).values[3]
        expected = torch.zeros(9, dtype=torch.float64)
        expected[0] = 1
        assert torch.allclose(values, expected, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", ["dasp", "moment_path"])
def test_on_a_linear_network_it_is_exact(method, seed):
    image = torch.randn(1, 3, 3, generator=torch.Generator().manual_seed(seed))
    net = counterexample()
    one = Game(lambda x: net(x).flatten(1), image, Players.windows((3, 3), 1))
    assert torch.allclose(estimate(one, method).values, estimate(one, "exact").values, atol=1e-5)


def test_the_authors_variant_differs_only_where_players_have_several_pixels():
    image = torch.randn(1, 6, 6, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 1)).eval()
    pixels, windows = (Game(net, image, Players.windows((6, 6), w)) for w in (1, 2))
    same = [estimate(pixels, "dasp", sizes=5, first_layer=kind).values for kind in ("shared", "pixels")]
    assert torch.allclose(*same, atol=1e-6)
    other = [estimate(windows, "dasp", sizes=5, first_layer=kind).values for kind in ("shared", "pixels")]
    assert not torch.allclose(*other, atol=1e-4)


def test_common_factors_bring_the_sum_of_a_residual_network_closer():
    torch.manual_seed(0)

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolutions = nn.ModuleList(nn.Conv2d(4, 4, 3, padding=1) for _ in range(4))

        def forward(self, x):
            for convolution in self.convolutions:
                x = torch.relu(x + convolution(x))
            return x

    net = nn.Sequential(nn.Conv2d(1, 4, 3), Residual(), nn.AdaptiveMaxPool2d(1), nn.Flatten()).eval()
    image = torch.randn(1, 12, 12, generator=torch.Generator().manual_seed(0))
    one = Game(net, image, Players.windows((12, 12), 3))
    truth = estimate(one, "owen", budget=20_000, seed=1).values
    plain, better = (estimate(one, "dasp", sizes=8, factors=k).values for k in (0, 9))
    assert float((better - truth).norm()) < float((plain - truth).norm())


@pytest.mark.parametrize("options", [{"first_layer": "other"}, {"sizes": 0}])
def test_wrong_options_are_explained(options):
    with pytest.raises(ProtoPFaithError, match=r"choose one of|at least one"):
        estimate(game(PLAYERS["any shape"]), "dasp", **options)


def test_a_function_that_leaves_torch_is_explained():
    one = Game(lambda x: x.flatten(1).sum(1), torch.zeros(1, 2, 2), Players.windows((2, 2), 1))
    one.function = lambda x: torch.zeros(len(x), 1)
    with pytest.raises(ProtoPFaithError, match="random variables"):
        estimate(one, "dasp")


@pytest.mark.parametrize(("asked", "used"), [(2, 2), (3, 3), (8, 8), (50, 9)])
@pytest.mark.parametrize("method", ["dasp", "moment_path"])
def test_as_many_common_factors_as_asked_for_are_used(method, asked, used):
    """No more than players; the options say how many."""
    seen = []

    def function(x):
        y = nn.functional.conv2d(x, torch.ones(1, 2, 3, 3))
        if isinstance(y, Gaussian):
            seen.append(len(y.factors))
        return y.relu().sum((1, 2, 3))[:, None]

    image = torch.randn(2, 9, 9, generator=torch.Generator().manual_seed(0))
    game = Game(function, image, PLAYERS["windows"])
    result = estimate(game, method, factors=asked)
    assert set(seen) == {used}
    assert result.options["factors"] == used


def test_fewer_than_no_factors_are_one_sentence():
    with pytest.raises(ProtoPFaithError, match="-1 of them; give at least one"):
        estimate(game(PLAYERS["windows"]), "dasp", factors=-1)

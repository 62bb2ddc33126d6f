import pytest
import torch
from torch.nn import functional as F

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import Game, Players
from protopfaith.shapley.estimators.moment_propagation.draws import Independent
from protopfaith.shapley.estimators.moment_propagation.passes import (
    check_finite,
    fitting_passes,
    moment_pass,
    player_image,
)

PIXELS = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(0))
WEIGHTS = torch.randn(3, 32, generator=torch.Generator().manual_seed(1))


def linear(x):
    return F.linear(x.flatten(1), WEIGHTS)


def game(function=linear, **options):
    return Game(function, PIXELS, Players.windows((4, 4), 2), 0.3, **options)


@torch.no_grad()
def test_the_expectation_is_that_over_all_coalitions():
    one, q = game(), torch.tensor([0.0, 0.2, 0.9, 1.0])
    coalitions = torch.cartesian_prod(*[torch.tensor([False, True])] * one.n_players)
    weights = torch.where(coalitions, q[:, None, None], 1 - q[:, None, None]).prod(2)
    found = moment_pass(one, player_image(one).drawn(Independent(q)))
    assert torch.allclose(found, (weights.double() @ one(coalitions).double()).float(), atol=1e-5)


def test_one_number_per_image_is_one_column():
    one = game(lambda x: x.flatten(1).sum(1))
    assert moment_pass(one, player_image(one).drawn(Independent(torch.rand(5)))).shape == (5, 1)


def test_a_function_that_leaves_its_argument_is_refused():
    one = game(lambda x: torch.zeros(len(x), 1))
    with pytest.raises(ProtoPFaithError, match="returned Tensor for random variables"):
        moment_pass(one, player_image(one))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_a_moment_that_is_not_finite_is_refused(bad):
    check_finite(torch.ones(3))
    with pytest.raises(ProtoPFaithError, match="NaN or infinity"):
        check_finite(torch.tensor([1.0, bad]))


def test_more_memory_takes_more_passes_at_a_time():
    counts = [
        fitting_passes(game(memory=m), lambda i: i[:, None] * torch.ones(50_000)) for m in (10**7, 10**9)
    ]
    assert 1 <= counts[0] < counts[1]

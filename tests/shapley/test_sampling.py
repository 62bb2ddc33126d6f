import inspect

import pytest
import torch

from protopfaith.shapley import ESTIMATORS, estimate
from protopfaith.shapley.sampling import blocks, by_sampling
from protopfaith.specs import PLAN

from .games import SAMPLING, network_game


@pytest.mark.parametrize("method", SAMPLING)
def test_sampling_estimators_share_their_plan(method):
    parameters = inspect.signature(ESTIMATORS[method]).parameters
    assert set(parameters) >= PLAN
    assert ESTIMATORS[method].__name__ == method
    assert ESTIMATORS[method].__doc__


def test_only_options_that_are_not_the_default_are_recorded():
    made = []

    @by_sampling
    def guess(game, state, *, times: int = 1, loud: bool = False):
        made.append((times, loud))
        return ESTIMATORS["owen"].__wrapped__(game, state)

    result = guess(network_game(), budget=100, times=1, loud=True)
    assert made == [(1, True)]
    assert result.options == {"loud": True}
    assert result.method == "guess"
    assert torch.equal(result.values, estimate(network_game(), "owen", budget=100).values)


@pytest.mark.parametrize("multiple", [1, 3, 64])
def test_blocks_are_bounded_multiples_and_leave_nothing_out(multiple):
    count = 6400 * multiple
    sizes = blocks(count, 5000, multiple)
    assert sum(sizes) == count
    assert all(size % multiple == 0 and size * 5000 <= 1 << 24 for size in sizes)

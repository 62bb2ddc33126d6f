from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from protopfaith.network import minimum_over_positions, squared_distances


def obvious(z: Tensor, prototypes: Tensor) -> Tensor:
    """The definition: differences, squared and summed, in float64."""
    z, prototypes = z.double(), prototypes.double()
    return (z[:, None] - prototypes[None, :, :, None, None]).square().sum(2)


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 3), st.integers(1, 70), st.integers(1, 5), st.integers(1, 5)),
    prototypes=st.integers(1, 9),
    scale=st.floats(1e-3, 1e3),
    offset=st.floats(-10, 10),
    seed=st.integers(0, 1000),
)
def test_equals_the_definition(shape, prototypes, scale, offset, seed):
    batch, channels, height, width = shape
    z = (random(*shape, seed=seed) + offset) * scale
    p = (random(prototypes, channels, seed=seed + 1) + offset) * scale
    distances = squared_distances(z, p)
    assert distances.shape == (batch, prototypes, height, width)
    assert distances.dtype == torch.float32
    assert (distances >= 0).all()
    # A common offset costs the digits that it takes in float32 itself, not the square of it.
    size = scale**2 * channels * (1 + abs(offset) * 1e-1)
    torch.testing.assert_close(distances.double(), obvious(z, p), rtol=1e-5, atol=2e-6 * size)


@pytest.mark.parametrize("channels", [16, 128, 512])
def test_prototype_that_is_a_latent_vector_is_at_distance_zero(channels):
    z = (1.5 * random(32, channels, 7, 7) - 0.25).clamp(0, 1)  # as ReLU1 leaves it, some values at the ends
    prototypes = z[:, :, 3, 4]
    own = squared_distances(z, prototypes)[range(32), range(32), 3, 4]
    assert (own >= 0).all()
    assert (own < 1e-6 * channels).all()


def test_float64_stays_and_half_is_computed_in_float32():
    z, p = random(2, 8, 3, 3), random(4, 8)
    assert squared_distances(z.double(), p.double()).dtype == torch.float64
    torch.testing.assert_close(squared_distances(z.double(), p.double()), obvious(z, p))
    half = squared_distances(z.bfloat16(), p)
    assert torch.equal(half, squared_distances(z.bfloat16().float(), p))


def test_autocast_changes_nothing():
    z, p = random(2, 32, 3, 3), random(4, 32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(squared_distances(z, p), squared_distances(z.clone(), p))
        inside = squared_distances(z, p)
    assert inside.dtype == torch.float32
    assert torch.equal(inside, squared_distances(z, p))


def test_gradients_are_those_of_the_definition():
    z = random(2, 6, 3, 2).double().requires_grad_()
    p = random(5, 6, seed=1).double().requires_grad_()
    weights = random(2, 5, 3, 2, seed=2).double()
    ours = torch.autograd.grad((squared_distances(z, p) * weights).sum(), (z, p))
    theirs = torch.autograd.grad((obvious(z, p) * weights).sum(), (z, p))
    torch.testing.assert_close(ours, theirs)


def test_gradient_at_distance_zero_is_zero():
    p = random(3, 40)
    z = p.t().reshape(1, 40, 1, 3).clone().requires_grad_()
    own = squared_distances(z, p)[0, range(3), 0, range(3)]
    (gradient,) = torch.autograd.grad(own.sum(), z)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), atol=1e-5, rtol=0)


def test_no_tensor_of_all_differences_arises():
    """Peak storage of any one tensor, seen through the dispatcher, stays at that of maps and latents."""
    from torch.utils._python_dispatch import TorchDispatchMode

    sizes: list[int] = []

    class Largest(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            sizes.extend(t.numel() for t in torch.utils._pytree.tree_leaves(out) if isinstance(t, Tensor))
            return out

    z, p = random(4, 32, 6, 6).requires_grad_(), random(50, 32).requires_grad_()
    with Largest():
        squared_distances(z, p).sum().backward()
    assert max(sizes) == 4 * 50 * 36  # B x P x h x w


def test_not_a_number_stays_visible():
    z = random(1, 4, 2, 2)
    z[0, 1, 0, 1] = torch.nan
    maps = squared_distances(z, random(3, 4))
    assert maps[:, :, 0, 1].isnan().all()
    assert minimum_over_positions(maps).isnan().all()
    assert maps[:, :, 1].isfinite().all()


def test_minimum_over_positions():
    maps = random(3, 4, 5, 6)
    expected = torch.stack([torch.stack([maps[b, j].min() for j in range(4)]) for b in range(3)])
    assert torch.equal(minimum_over_positions(maps), expected)


class Interval:
    """A tensor-like type of its own: what a rule for distances needs to reach it."""

    def __init__(self, low: Tensor, high: Tensor):
        self.low, self.high = low, high

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is squared_distances:
            z, prototypes = args
            ends = [squared_distances(end, prototypes) for end in (z.low, z.high)]
            return cls(torch.minimum(*ends), torch.maximum(*ends))
        if func is minimum_over_positions:
            return cls(minimum_over_positions(args[0].low), minimum_over_positions(args[0].high))
        return NotImplemented


def test_other_types_bring_their_own_rule():
    z, p = random(1, 3, 2, 2), random(4, 3)
    maps = squared_distances(Interval(z, z + 1), p)
    result = minimum_over_positions(maps)
    assert isinstance(result, Interval)
    assert torch.equal(maps.low, torch.minimum(squared_distances(z, p), squared_distances(z + 1, p)))
    assert result.low.shape == (1, 4)

import pytest
import torch

from protopfaith.shapley.estimators.adaptive_owen import coalitions
from protopfaith.shapley.estimators.adaptive_owen.coalitions import (
    allocate,
    masks_of_sizes,
    random_keys,
    spread_sizes,
)


def integers(count, n, generator):
    """The keys that a GPU takes for many players."""
    return torch.randint(2**coalitions.KEY_BITS - 1, (count, n), generator=generator, dtype=torch.int32)


@pytest.mark.parametrize("keys", [random_keys, integers])
def test_masks_have_their_sizes_and_every_player_an_equal_chance(keys):
    generator = torch.Generator().manual_seed(0)
    sizes = torch.arange(1, 13).repeat_interleave(4000)
    masks = masks_of_sizes(sizes, keys(len(sizes), 13, generator))
    assert masks.dtype == torch.bool
    assert torch.equal(masks.sum(1), sizes)
    for size in (1, 6, 12):
        p = size / 13
        chances = masks[sizes == size].double().mean(0)
        assert float((chances - p).abs().max()) < 5 * (p * (1 - p) / 4000) ** 0.5
        pairs = masks[sizes == size].double()
        together = float((pairs[:, 0] * pairs[:, 1]).mean())
        expected = size * (size - 1) / (13 * 12)
        assert abs(together - expected) < 5 * (max(expected, 1 / 4000) / 4000) ** 0.5


def test_equal_keys_do_not_change_the_sizes(monkeypatch):
    """Eight different keys for 50 players: ties at every threshold."""
    monkeypatch.setattr(coalitions, "KEY_BITS", 3)
    sizes = torch.arange(1, 50)
    keys = integers(len(sizes), 50, torch.Generator().manual_seed(1))
    assert torch.equal(masks_of_sizes(sizes, keys).sum(1), sizes)


@pytest.mark.parametrize("start", [0, 700])
def test_sizes_come_as_often_as_their_chances_say_wherever_one_begins(start):
    chance = torch.rand(12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    sizes = spread_sizes(chance, start, 1000, 0.3)
    counts = torch.bincount(sizes, minlength=13)
    assert counts[0] == 0
    expected = 1000 * chance / chance.sum()
    assert float((counts[1:] - expected).abs().max()) < 4
    assert torch.equal(sizes[100:], spread_sizes(chance, start + 100, 900, 0.3))


@pytest.mark.parametrize("n", [3, 10, 500])
def test_sizes_with_more_variance_get_more_samples_and_none_gets_nothing(n):
    sizes = torch.arange(1, n).repeat(4)
    even = allocate(torch.full((len(sizes),), 1 / len(sizes), dtype=torch.float64), sizes, n)
    assert torch.allclose(even, torch.full((n - 1,), 1 / (n - 1), dtype=torch.float64))
    variance = (sizes == n - 1).double()
    chance = allocate(variance / variance.sum(), sizes, n)
    assert float(chance.sum()) == pytest.approx(1)
    assert chance[-1] == chance.max() > 1 / (n - 1)
    assert float(chance.min()) >= 0.2 / (n - 1)

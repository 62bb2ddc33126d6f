from __future__ import annotations

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import crop_box, protopnet_maps
from protopfaith.explanation.protopnet_map import flip, upscale
from protopfaith.network import ProtoPNet


def network(activation: str = "relu1", similarity: str = "linear") -> ProtoPNet:
    return ProtoPNet("small", 2, 1, 8, activation=activation, similarity=similarity)


@pytest.mark.parametrize("activation", ["relu1", "sigmoid"])
def test_bounded_distances_are_flipped_at_their_bound(activation: str) -> None:
    maps = 8 * torch.rand(2, 3, 3)
    assert torch.equal(flip(network(activation), maps), 8 - maps)


def test_on_the_unit_sphere_no_distance_exceeds_four() -> None:
    maps = 4 * torch.rand(2, 3, 3)
    assert torch.equal(flip(network("unit"), maps), 4 - maps)


def test_unbounded_distances_are_flipped_at_their_largest() -> None:
    maps = 100 * torch.rand(2, 3, 3)
    flipped = flip(network("relu"), maps)
    for before, after in zip(maps, flipped, strict=True):
        assert torch.equal(after, before.max() - before)


def test_the_original_model_has_log_activations() -> None:
    maps = torch.rand(2, 3, 3)
    expected = torch.log((maps + 1) / (maps + 1e-4))
    assert torch.equal(flip(network(similarity="log"), maps), expected)


@pytest.mark.parametrize("interpolation", ["bilinear", "cubic"])
def test_the_nearest_place_is_the_brightest(interpolation: str) -> None:
    maps = torch.full((1, 4, 4), 5.0)
    maps[0, 1, 2] = 0.0
    large = protopnet_maps(network(), maps, (32, 48), interpolation)
    assert large.shape == (1, 32, 48)
    row, column = divmod(int(large.argmax()), 48)
    assert 8 <= row < 16
    assert 24 <= column < 36


def test_unknown_interpolation() -> None:
    with pytest.raises(ProtoPFaithError, match="choose bilinear or cubic"):
        upscale(torch.zeros(1, 2, 2), (4, 4), "nearest")


def test_the_box_is_the_smallest_around_what_exceeds_the_percentile() -> None:
    activation = torch.rand(20, 30, generator=torch.Generator().manual_seed(0))
    activation[4:9, 11:13] += 5
    left, top, right, bottom = crop_box(activation, 99.0)
    threshold = torch.quantile(activation.double(), 0.99)
    inside = [(y, x) for y in range(20) for x in range(30) if activation[y, x] >= threshold]
    ys, xs = [y for y, _ in inside], [x for _, x in inside]
    assert (left, top, right, bottom) == (min(xs), min(ys), max(xs) + 1, max(ys) + 1)
    assert crop_box(torch.ones(5, 6)) == (0, 0, 6, 5)

"""Consistency, stability and coverage against loops over prototypes, images and parts."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.metrics.parts import (
    consistent,
    coverage,
    main_parts,
    mask_point,
    nearest_part,
    part_frequencies,
    part_kinds,
    part_points,
    parts_in_box,
    peak,
    stable,
)

SEEDS = st.integers(0, 10_000)


def drawn(seed: int, *shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed)) < 0.6


@given(SEEDS)
def test_consistency_is_that_of_the_slow_way(seed: int) -> None:
    hits, visible = drawn(seed, 3, 5, 4), drawn(seed + 1, 5, 4)
    found = consistent(hits, visible, 0.8).tolist()
    for prototype in range(3):
        best = 0.0
        for part in range(4):
            images = [image for image in range(5) if visible[image, part]]
            if images:
                best = max(best, sum(bool(hits[prototype, i, part]) for i in images) / len(images))
        assert found[prototype] == (best >= 0.8)


@given(SEEDS)
def test_stability_is_that_of_the_slow_way(seed: int) -> None:
    hits, noisy, visible = drawn(seed, 2, 4, 3), drawn(seed + 1, 2, 4, 3), drawn(seed + 2, 4, 3)
    for prototype, value in enumerate(stable(hits, noisy, visible).tolist()):
        same = 0
        for image in range(4):
            before = [bool(h) for h, v in zip(hits[prototype, image], visible[image], strict=True) if v]
            after = [bool(h) for h, v in zip(noisy[prototype, image], visible[image], strict=True) if v]
            same += before == after
        assert value == same / 4


@given(SEEDS)
def test_what_is_the_same_after_noise_is_stable(seed: int) -> None:
    hits, visible = drawn(seed, 2, 4, 3), drawn(seed + 2, 4, 3)
    assert stable(hits, hits, visible).tolist() == [1.0, 1.0]


def test_parts_that_no_image_shows_say_nothing() -> None:
    visible = torch.tensor([[True, False], [True, False]])
    hits = torch.tensor([[[False, True], [False, True]]])
    assert math.isnan(part_frequencies(hits, visible)[0, 1])
    assert not consistent(hits, visible)[0]


@given(SEEDS, st.floats(0, 40), st.floats(0, 30), st.floats(0.05, 1.0))
def test_the_box_keeps_its_size_inside_the_image(seed: int, x: float, y: float, share: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    points = torch.rand(50, 2, generator=generator, dtype=torch.float64) * torch.tensor([40.0, 30.0])
    found = parts_in_box(points, (x, y), (30, 40), share)
    across, down = 40 * share, 30 * share
    left = min(max(x - across / 2, 0), 40 - across)
    top = min(max(y - down / 2, 0), 30 - down)
    expected = [left <= a <= left + across and top <= b <= top + down for a, b in points.tolist()]
    assert found.tolist() == expected


def test_hidden_parts_are_in_no_box() -> None:
    assert not parts_in_box(torch.full((1, 2), math.nan), (5, 5), (10, 10), 1.0).any()


def test_a_peak_is_the_middle_of_the_largest_pixels() -> None:
    explanation = torch.randn(9, 9, generator=torch.Generator().manual_seed(0))
    explanation[4, 7] = 9
    assert peak(explanation) == (7.5, 4.5)
    with pytest.raises(ProtoPFaithError, match="no numbers"):
        peak(torch.full((3, 3), math.nan))


def test_the_nearest_part_is_one_in_the_box() -> None:
    points = torch.tensor([[0.0, 0.0], [9.0, 9.0], [math.nan, math.nan]])
    assert nearest_part(points, (1.0, 1.0), torch.tensor([True, True, False])) == 0
    assert nearest_part(points, (1.0, 1.0), torch.tensor([False, True, False])) == 1
    assert nearest_part(points, (1.0, 1.0), torch.tensor([False, False, False])) == -1


def test_coverage_counts_parts_once() -> None:
    kinds = part_kinds(["beak", "left eye", "right eye", "tail"])
    assert kinds == [0, 1, 1, 2]
    assert coverage([1, 2, 0, 0, -1]) == 3
    assert coverage([1, 2, 0, 0, -1], kinds) == 2
    assert coverage([-1]) == 0
    assert main_parts(torch.tensor([[3, 3, -1], [-1, 0, -1]])).tolist() == [3, -1]


def test_a_ring_has_a_point_on_itself() -> None:
    mask = torch.ones(5, 5, dtype=torch.bool)
    mask[1:4, 1:4] = False
    x, y = mask_point(mask)
    assert mask[int(y), int(x)]


def test_points_go_by_name() -> None:
    found = part_points({"b": (1.0, 2.0), "z": (3.0, 4.0)}, ["a", "b"])
    assert found[0].isnan().all()
    assert found[1].tolist() == [1.0, 2.0]

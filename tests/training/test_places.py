from __future__ import annotations

import pytest
import torch

from protopfaith.training.places import (
    RADIUS,
    SHARPNESS,
    TELLING,
    assign_places,
    maps_of_own_class,
    placed_cost,
    telling,
)


def slowly_assigned(maps: torch.Tensor, allowed: torch.Tensor) -> list[int]:
    """One image (K x h x w): always the smallest distance that is left."""
    count, height, width = maps.shape
    left = torch.ones(height, width, dtype=torch.bool)
    places: dict[int, int] = {}
    while len(places) < count:
        if not bool((left & allowed).any()):
            left[:] = True
        entries = [
            (float(maps[number, row, column]), number, row, column)
            for number in range(count)
            for row in range(height)
            for column in range(width)
            if number not in places and bool(left[row, column]) and bool(allowed[row, column])
        ]
        _, number, row, column = min(entries)
        places[number] = row * width + column
        left[max(row - RADIUS, 0) : row + RADIUS + 1, max(column - RADIUS, 0) : column + RADIUS + 1] = False
    return [places[number] for number in range(count)]


@pytest.mark.parametrize(("count", "side"), [(1, 3), (3, 7), (5, 7), (5, 2)])
@pytest.mark.parametrize("limited", [False, True])
def test_the_smallest_distance_that_is_left_comes_first(count: int, side: int, limited: bool) -> None:
    generator = torch.Generator().manual_seed(count + side)
    maps = torch.rand(6, count, side, side, generator=generator)
    allowed = (
        torch.rand(6, side, side, generator=generator) < 0.5 if limited else torch.ones(6, side, side) > 0
    )
    allowed[:, 0, 0] = True
    found = assign_places(maps, allowed if limited else None)
    slow = [slowly_assigned(one, free) for one, free in zip(maps, allowed, strict=True)]
    assert found.tolist() == slow


def test_places_lie_apart() -> None:
    maps = torch.rand(1, 4, 9, 9).expand(5, 4, 9, 9) * torch.tensor([1.0, 1.01, 1.02, 1.03])[:, None, None]
    places = assign_places(maps)
    rows, columns = places // 9, places % 9
    apart = torch.maximum(
        (rows[:, :, None] - rows[:, None]).abs(), (columns[:, :, None] - columns[:, None]).abs()
    )
    assert int((apart + 99 * torch.eye(4, dtype=torch.long)).min()) > RADIUS


def test_each_prototype_must_find_its_place_among_all_that_are_no_neighbors() -> None:
    maps = torch.rand(3, 6, 5, 5, requires_grad=True)
    classes, labels = torch.tensor([1, 0, 1, 0, 2, 2]), torch.tensor([0, 2, 1])
    cost = placed_cost(maps, labels, classes, 3)
    own = maps_of_own_class(maps, labels, classes, 3)
    assert torch.equal(own[0], maps[0, [1, 3]])
    places = assign_places(own.detach())
    slow = []
    for image in range(3):
        for number in range(2):
            row, column = divmod(int(places[image, number]), 5)
            weights = [
                torch.exp(-own[image, number, y, x] / SHARPNESS)
                for y in range(5)
                for x in range(5)
                if (y, x) == (row, column) or max(abs(y - row), abs(x - column)) > RADIUS
            ]
            slow.append(-torch.log(torch.exp(-own[image, number, row, column] / SHARPNESS) / sum(weights)))
    assert torch.allclose(cost, torch.stack(slow).mean(), atol=1e-5)
    cost.backward()
    assert maps.grad is not None
    others = maps.grad[0, [0, 2, 4, 5]]
    assert torch.equal(others, torch.zeros_like(others))  # prototypes of other classes are left alone


def test_the_cost_falls_as_prototypes_come_to_their_places() -> None:
    near, far = torch.full((1, 2, 7, 7), 2.0), torch.full((1, 2, 7, 7), 2.0)
    near[0, 0, 1, 1] = near[0, 1, 5, 5] = 0.2  # two places
    far[0, :, 1, 1] = torch.tensor([0.2, 0.3])  # both at one
    labels, classes = torch.tensor([0]), torch.tensor([0, 0])
    assert placed_cost(near, labels, classes, 1) < 1e-5 < placed_cost(far, labels, classes, 1)


def test_a_map_of_one_position_costs_nothing() -> None:
    assert float(placed_cost(torch.rand(2, 3, 1, 1), torch.tensor([0, 0]), torch.zeros(3).long(), 1)) == 0


def test_the_positions_with_most_evidence_are_telling() -> None:
    evidence = torch.arange(20.0).reshape(1, 4, 5)
    assert telling(evidence).sum() == round(TELLING * 20)
    assert telling(evidence)[0, 3].all()

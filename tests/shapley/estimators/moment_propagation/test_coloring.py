import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from protopfaith.shapley import Players
from protopfaith.shapley.estimators.moment_propagation.coloring import color_players, spread_apart


def assert_proper(labels, reach, colors):
    """No window of the receptive field's size sees two players of one color: every window is looked at."""
    for row, column in itertools.product(*(range(s) for s in labels.shape[1:])):
        seen = labels[:, row : row + reach[0], column : column + reach[1]].unique()
        assert len(colors[seen].unique()) == len(seen)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 7), st.integers(1, 7))
def test_windows_of_one_color_never_share_a_receptive_field(down, right, high, wide):
    labels = Players.windows((13, 11), (down, right)).labels[None]
    assert_proper(labels, (high, wide), color_players(labels, (high, wide)))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 3), st.integers(1, 5), st.integers(1, 3))
def test_players_of_any_shape_are_colored_properly(seed, channels, high, wide):
    labels = torch.randint(0, 6, (channels, 9, 8), generator=torch.Generator().manual_seed(seed))
    labels = labels.unique(return_inverse=True)[1]
    assert_proper(labels, (high, wide), color_players(labels, (high, wide)))


@pytest.mark.parametrize(("window", "reach", "colors"), [(2, 7, 16), (16, 7, 4), (1, 3, 9), (4, 1, 1)])
def test_few_colors_suffice_for_windows(window, reach, colors):
    labels = Players.windows((64, 64), window).labels[None]
    assert int(color_players(labels, (reach, reach)).max()) + 1 == colors


def test_an_unknown_reach_gives_every_player_its_own_color():
    labels = Players.windows((4, 4), 2).labels[None]
    assert color_players(labels, None).tolist() == [0, 1, 2, 3]


def test_groups_lie_far_apart():
    grid = Players.windows((12, 12), 2)
    groups = spread_apart(grid.labels, 9)
    assert int(groups.max()) == 8
    assert_proper(grid.labels[None], (5, 5), groups)  # a period of three windows
    shapes = torch.randint(0, 20, (12, 12), generator=torch.Generator().manual_seed(0))
    assert spread_apart(shapes, 4).unique().tolist() == [0, 1, 2, 3]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 90))
def test_there_are_as_many_groups_as_asked_for(rows, columns, count):
    labels = Players.windows((rows, columns), 1).labels
    groups = spread_apart(labels, count)
    assert groups.unique().tolist() == list(range(min(count, rows * columns)))


@pytest.mark.parametrize("count", [2, 3, 5, 7, 8, 12, 15, 16])
def test_no_lattice_on_a_grid_lies_farther_apart(count):
    """Against every lattice with that many windows in a cell, step by step."""
    side = 24
    steps = [(r, c) for r in range(side) for c in range(-side, side) if (r, c) > (0, 0)]
    best = 0
    for down in (d for d in range(1, count + 1) if count % d == 0):
        right = count // down
        for shift in range(right):
            within = [(r, c) for r, c in steps if r % down == 0 and (c - r // down * shift) % right == 0]
            best = max(best, min(r * r + c * c for r, c in within))
    groups = spread_apart(Players.windows((side, side), 1).labels, count).reshape(side, side)
    places = (groups == groups[side // 2, side // 2]).nonzero() - side // 2
    lengths = places.square().sum(1)
    assert int(lengths[lengths > 0].min()) == best

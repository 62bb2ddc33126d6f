"""Regions: windows, superpixels, drawn by hand; within bounds."""

from __future__ import annotations

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.serve.question import Question
from protopfaith.serve.regions import drawn_players, first_players, players_for
from protopfaith.shapley import Players

LEFT = ((0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (0.0, 1.0))
WHOLE = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))


def test_drawn_regions_cover_the_image_with_the_rest() -> None:
    players = drawn_players((LEFT,), (10, 10))
    assert len(players) == 2
    assert 40 <= int((players.labels == 1).sum()) <= 60
    later = drawn_players((WHOLE, LEFT), (10, 10))
    assert len(later) == 2
    with pytest.raises(ProtoPFaithError, match="leave nothing"):
        drawn_players((WHOLE,), (10, 10))


@pytest.mark.parametrize(
    ("polygons", "message"),
    [
        ((((0.2, 0.2),) * 3,), "Region 1 of those drawn is a line or a point"),
        ((LEFT, ((0.6, 0.1), (0.7, 0.2), (0.9, 0.4))), "Region 2 of those drawn is a line or a point"),
        ((LEFT, LEFT), "Region 1 of those drawn is covered by later ones"),
    ],
)
def test_drawn_regions_without_pixels_are_refused(polygons: tuple, message: str) -> None:
    with pytest.raises(ProtoPFaithError, match=message):
        drawn_players(polygons, (100, 100))


def test_a_region_may_cross_itself() -> None:
    assert len(drawn_players((((0.1, 0.1), (0.9, 0.9), (0.9, 0.1), (0.1, 0.9)),), (100, 100))) == 2


def test_there_are_no_more_regions_than_allowed() -> None:
    image = torch.zeros(3, 64, 64)
    with pytest.raises(ProtoPFaithError, match="larger"):
        players_for(Question(players="windows:2"), image, 100)
    assert len(players_for(Question(players="superpixels:4000"), torch.rand(3, 64, 64), 100)) <= 100


def test_a_coarse_map_comes_first_only_where_it_is_quicker() -> None:
    image = torch.zeros(3, 56, 56)
    assert first_players(Players.windows((56, 56), 4), image) is not None
    assert first_players(Players.windows((56, 56), 8), image) is None

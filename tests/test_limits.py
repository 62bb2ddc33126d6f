from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.limits import check_limits, check_pixels, limit
from protopfaith.shapley import Game, check_estimate, estimate


def test_a_limit_can_be_raised(monkeypatch) -> None:
    with pytest.raises(ProtoPFaithError, match="PROTOPFAITH_MAX_PIXELS"):
        check_pixels(10_000, 10_000, "The image")
    monkeypatch.setenv("PROTOPFAITH_MAX_PIXELS", "100000000")
    check_pixels(10_000, 10_000, "The image")


@pytest.mark.parametrize("text", ["x", "-1", "0", "1.5", "1e6", "9" * 50])
def test_a_limit_that_is_none(monkeypatch, text) -> None:
    monkeypatch.setenv("PROTOPFAITH_MAX_PIXELS", text)
    with pytest.raises(ProtoPFaithError, match="PROTOPFAITH_MAX_PIXELS must be a whole number"):
        limit("PROTOPFAITH_MAX_PIXELS")


def test_an_image_has_pixels() -> None:
    with pytest.raises(ProtoPFaithError, match="0 x 5 pixels"):
        check_pixels(0, 5, "The image")


@pytest.mark.parametrize("asked", [estimate, check_estimate])
def test_a_game_of_too_many_players_is_refused_before_it_is_played(
    asked: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    game = Game(lambda images: images.flatten(1).sum(1), torch.ones(1, 8, 8), 1)
    monkeypatch.setenv("PROTOPFAITH_MAX_PLAYERS", "63")
    with pytest.raises(ProtoPFaithError, match="64 players are more than 63"):
        asked(game, budget=200)
    monkeypatch.setenv("PROTOPFAITH_MAX_PLAYERS", "64")
    asked(game, budget=200)


def test_limits_are_checked_before_any_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    check_limits()
    monkeypatch.setenv("PROTOPFAITH_MAX_FILE", "2GB")
    with pytest.raises(ProtoPFaithError, match=r"PROTOPFAITH_MAX_FILE must be a whole number .* not '2GB'"):
        check_limits()

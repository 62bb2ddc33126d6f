from __future__ import annotations

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.limits import check_pixels, limit


def test_a_limit_can_be_raised(monkeypatch) -> None:
    with pytest.raises(ProtoPFaithError, match="PROTOPFAITH_MAX_PIXELS"):
        check_pixels(10_000, 10_000, "The image")
    monkeypatch.setenv("PROTOPFAITH_MAX_PIXELS", "100000000")
    check_pixels(10_000, 10_000, "The image")


@pytest.mark.parametrize("text", ["x", "-1", "0", "1.5", "9" * 50])
def test_a_limit_that_is_none(monkeypatch, text) -> None:
    monkeypatch.setenv("PROTOPFAITH_MAX_PIXELS", text)
    with pytest.raises(ProtoPFaithError, match="PROTOPFAITH_MAX_PIXELS must be a number"):
        limit("PROTOPFAITH_MAX_PIXELS")


def test_an_image_has_pixels() -> None:
    with pytest.raises(ProtoPFaithError, match="0 x 5 pixels"):
        check_pixels(0, 5, "The image")

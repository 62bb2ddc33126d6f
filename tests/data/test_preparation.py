from __future__ import annotations

import pytest

from protopfaith.data import prepare
from protopfaith.errors import ProtoPFaithError


def test_the_report_counts_what_is_there() -> None:
    found = prepare("birds", size=16, train=16, validation=8, test=8)
    text = str(found)
    assert "32 images of 8 classes (4 to 4 each), all readable" in text
    assert "at 16x16: 16 train, 8 validation, 8 test" in text
    assert found.data.fingerprint[:16] in text


def test_what_is_missing_is_one_error() -> None:
    with pytest.raises(ProtoPFaithError, match="--root"):
        prepare("cub")

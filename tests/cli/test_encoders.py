from __future__ import annotations

from pathlib import Path

from protopfaith.network import ENCODERS
from tests.cli.conftest import protopfaith


def test_encoders_are_listed(place: Path) -> None:
    text = protopfaith(place, "encoders").stdout
    for name in [*ENCODERS, "densenet121", "timm:"]:
        assert name in text

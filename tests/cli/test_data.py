from __future__ import annotations

from pathlib import Path

from PIL import Image

from tests.cli.conftest import protopfaith


def test_contact_sheet(place: Path) -> None:
    shown = (
        "data",
        "show",
        "folder",
        "--root",
        "images",
        "--size",
        "24",
        "--out",
        "sheet.png",
        "--columns",
        "4",
    )
    assert protopfaith(place, *shown).returncode == 0
    assert Image.open(place / "sheet.png").size[0] == 4 * 112

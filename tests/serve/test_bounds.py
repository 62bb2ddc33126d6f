"""Limits are those of the documentation, and hold together."""

from __future__ import annotations

import re
from pathlib import Path

from protopfaith.serve.bounds import Bounds

EXPLORER = Path(__file__).parents[2] / "docs" / "how-to" / "explorer.md"


def test_the_documentation_names_the_largest_upload() -> None:
    found = re.search(r"(\d+) MB per file", EXPLORER.read_text(encoding="utf-8"))
    assert found is not None
    assert Bounds().upload == int(found[1]) * 2**20


def test_one_visitor_cannot_take_the_place_of_all_others() -> None:
    bounds = Bounds()
    assert bounds.visitor_cases <= bounds.cases / 2
    assert bounds.body < bounds.upload
    assert bounds.stream < bounds.unseen  # a living page is back before its case is forgotten

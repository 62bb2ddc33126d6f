"""The page that lists several cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from protopfaith.explanation.saving import load
from protopfaith.show.colors import scale_of
from protopfaith.show.pages import write_page
from protopfaith.show.pictures import Picture, Pictures
from protopfaith.show.wording.numbers import percent


@dataclass(frozen=True)
class Card:
    """A case of the page."""

    link: str
    title: str
    text: str
    picture: Picture


def write_index(path: Path, cases: Sequence[Path], failures: Sequence[tuple[str, str]]) -> Path:
    """Links to the reports of `cases` (folders beside `path`), and what failed."""
    return write_page(path, "index.html", cards=[_card(case) for case in cases], failures=failures)


def _card(case: Path) -> Card:
    found = load(case / "explanation.json")
    mine = found.class_map
    return Card(
        quote(f"{case.name}/report.html"),
        found.title,
        f"{found.name}, {percent(float(found.probabilities[found.target]))}",
        Pictures().ours(found.original, mine, scale_of([mine]), found.title),
    )

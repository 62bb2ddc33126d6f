"""The page that lists several cases."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from protopfaith.files import atomic
from protopfaith.show.page import render_page


def write_index(path: Path, cases: Sequence[Path], failures: Sequence[tuple[str, str]]) -> Path:
    """Links to the reports of `cases` (folders beside `path`), and what failed."""
    cards = "".join(_card(case) for case in cases)
    noun = "image" if len(cases) == 1 else "images"
    body = f"<header><p class='kicker'>ProtoPFaith</p><h1>{len(cases)} explained {noun}</h1></header>"
    body += f"<section class='cards'>{cards}</section>"
    if failures:
        rows = "".join(f"<tr><td>{escape(name)}</td><td>{escape(text)}</td></tr>" for name, text in failures)
        body += f"<section><h2>Not explained</h2><table class='plain'>{rows}</table></section>"
    with atomic(path) as partial:
        partial.write_text(
            render_page("Explained images", body, {"maps": [], "labels": []}), encoding="utf-8"
        )
    return path


def _card(case: Path) -> str:
    from protopfaith.explanation.saving import load
    from protopfaith.show.colors import scale_of
    from protopfaith.show.percent import percent
    from protopfaith.show.pictures import Pictures

    found = load(case / "explanation.json")
    mine = found.class_map
    words = ("", "", "")
    picture = (
        Pictures().ours(found.original, mine, scale_of([mine]), found.title, words).replace(" hoverable", "")
    )
    link = quote(f"{case.name}/report.html")
    p = percent(float(found.probabilities[found.target]))
    return (
        f'<article class="card"><a href="{link}">{picture}</a><h3><a '
        f'href="{link}">{escape(found.title)}</a></h3>'
        f"<p>{escape(found.name)}, {p}</p></article>"
    )

"""Pages and blocks of HTML: templates of the explorer, which stand on those of the reports."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protopfaith.show.wording.numbers import percent

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
REPORT_TEMPLATES = HERE.parent / "show" / "templates"
FILES = {
    "explorer.js": (HERE / "static" / "explorer.js", "text/javascript"),
    "explorer.css": (HERE / "static" / "explorer.css", "text/css"),
    "regions.js": (REPORT_TEMPLATES / "regions.js", "text/javascript"),
    "style.css": (REPORT_TEMPLATES / "style.css", "text/css"),
}
"""All files that can be fetched."""


def render(template: str, **view: Any) -> str:
    """A page or a block; all text is escaped in the template."""
    return environment().get_template(template).render(**view)


def with_own_ids(html: str, mark: str) -> str:
    """A block whose pictures have ids of their own, so that several stand on one page.

    >>> with_own_ids('<path id="r0-1"/><use href="#r0-1" fill="url(#lines)"/>', "a-")
    '<path id="a-r0-1"/><use href="#a-r0-1" fill="url(#a-lines)"/>'
    """
    return _IDS.sub(lambda found: f"{found[1]}{mark}{found[2]}", html)


# Quotes in texts are escaped, so this only ever finds attributes of our own templates.
_IDS = re.compile(r'((?:id="|href="#|url\(#))((?:[ir]\d|lines|colors))')


@cache
def file_content(name: str) -> tuple[bytes, str]:
    """One of `FILES`, and its type."""
    path, kind = FILES[name]
    return path.read_bytes(), kind


@cache
def environment() -> Environment:
    """The explorer's templates, and behind them those of the reports."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=ChoiceLoader([PackageLoader("protopfaith.serve"), PackageLoader("protopfaith.show")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["percent"] = percent
    return made

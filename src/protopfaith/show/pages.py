"""Pages: templates filled with plain data; style and script are inside, so one file is all that is needed."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protopfaith import arguments
from protopfaith.show.wording.numbers import percent
from protopfaith.writing import atomic, refuse_others

if TYPE_CHECKING:
    from jinja2 import Environment

NO_DATA: dict[str, Any] = {"maps": [], "labels": []}


def write_page(path: Path | str, template: str, data: dict[str, Any] | None = None, **view: Any) -> Path:
    """Writes a page whole or not at all; arguments are those of `render_page`."""
    path, text = arguments.path(path, "Where to write"), render_page(template, data, **view)
    refuse_others(path, (".html", ".htm"), b"<!doctype html", "page")
    with atomic(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return path


def render_page(template: str, data: dict[str, Any] | None = None, **view: Any) -> str:
    """A page as text.

    Args:
        template: A file in `templates/` that extends `base.html`.
        data: What the page's script reads.
        **view: What the template shows; all text is escaped there.
    """
    from markupsafe import Markup

    style, script = _read("style.css"), _read("regions.js") + _read("script.js")
    # "<" never appears in the data, so nothing in it can end the script element.
    island = json.dumps(data or NO_DATA, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return (
        _environment()
        .get_template(template)
        .render(
            style=Markup(style),
            script=Markup(script),
            policy=_policy(style, script),
            data=Markup(island),
            **view,
        )
    )


def render_fragment(template: str, **view: Any) -> str:
    """A template without the frame of a page, such as what a notebook shows."""
    return _environment().get_template(template).render(**view)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("protopfaith.show"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["percent"] = percent
    return environment


@cache
def _read(name: str) -> str:
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Only this style, this script and embedded images: nothing else could run, or call home."""
    return (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

"""The frame of every page: style and script within it, so that the file is all that is needed."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from string import Template
from typing import Any


def read_part(name: str) -> str:
    return (files("protopfaith.show.templates") / name).read_text(encoding="utf-8")


def fill(template: str, **parts: str) -> str:
    """A template of this folder with its `$placeholders` filled in; `parts` are HTML."""
    return Template(read_part(template)).substitute(parts)


def render_page(title: str, body: str, data: dict[str, Any]) -> str:
    """The whole page. `title` is text, `body` is HTML, `data` is for the script."""
    # "<" never appears in the data island, so nothing in it can end the script element.
    island = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return fill(
        "page.html",
        title=escape(title),
        style=read_part("style.css"),
        script=read_part("script.js"),
        body=body,
        data=island,
    )

"""Templates, and the files that pages fetch."""

from __future__ import annotations

import re

import httpx
import pytest
from jinja2 import UndefinedError

from protopfaith.serve.pages import FILES, environment, file_content, render, with_own_ids


@pytest.mark.parametrize("name", FILES)
def test_files_are_served_as_they_are(client: httpx.Client, name: str) -> None:
    answer = client.get(f"/static/{name}")
    content, kind = file_content(name)
    assert answer.content == content == FILES[name][0].read_bytes()
    assert answer.headers["Content-Type"].startswith(kind)


def test_texts_are_escaped() -> None:
    html = render("error_page.html", page="", title="<b>", text="<script>&\"'")
    assert "<b>" not in html
    assert "&lt;b&gt;" in html
    assert "&lt;script&gt;&amp;" in html


def test_what_a_template_is_not_given_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="text"):
        render("error_page.html", page="", title="x")


def test_every_template_can_be_read() -> None:
    names = [name for name in environment().list_templates() if name.endswith(".html")]
    assert "error_page.html" in names
    for name in names:
        environment().get_template(name)


def test_two_blocks_on_a_page_share_no_id() -> None:
    block = '<path id="r0-1"/><image id="i3"/><use href="#r0-1" fill="url(#colors)"/><a href="#top">id=r0</a>'
    first, second = with_own_ids(block, "a-"), with_own_ids(block, "b-")
    ids = [set(re.findall(r'id="([^"]+)"', html)) for html in (first, second)]
    assert ids == [{"a-r0-1", "a-i3"}, {"b-r0-1", "b-i3"}]
    assert 'href="#a-r0-1" fill="url(#a-colors)"' in first
    assert '<a href="#top">id=r0</a>' in first  # of the page, or text

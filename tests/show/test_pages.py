"""What all pages have in common."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from pathlib import Path

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.show.pages import _environment, render_page, write_page
from protopfaith.writing import PAGE

LISTED = {"verdicts": {}, "cards": [], "failures": [("<script>alert(1)</script>", 'it said "no" & left')]}


def policy(page: str) -> dict[str, str]:
    """The directives of the page's Content-Security-Policy."""
    content = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert content is not None
    parts = (part.strip().split(" ", 1) for part in html.unescape(content.group(1)).split(";"))
    return dict(parts)


def test_all_text_is_escaped() -> None:
    page = render_page("index.html", **LISTED)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_a_page_overwrites_pages_alone(tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(b"a photo")
    with pytest.raises(ProtoPFaithError, match=r"photo\.png is there already and no page"):
        write_page(tmp_path / "photo.png", "index.html", **LISTED)
    assert (tmp_path / "photo.png").read_bytes() == b"a photo"
    for name in ("new", "index.html"):
        for _ in range(2):
            assert write_page(tmp_path / name, "index.html", **LISTED).stat().st_size > 1000


@pytest.mark.parametrize(("tag", "directive"), [("style", "style-src"), ("script", "script-src")])
def test_the_policy_allows_what_is_inside_and_nothing_else(tag: str, directive: str) -> None:
    page = render_page("index.html", **LISTED)
    inside = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in inside]
    assert policy(page)[directive] == " ".join(f"'sha256-{one}'" for one in hashes)
    assert policy(page)["default-src"] == "'none'"
    assert policy(page)["img-src"] == "data:"


def test_no_style_attributes_that_the_policy_would_block() -> None:
    for template in (Path(render_page.__code__.co_filename).parent / "templates").glob("*.html"):
        if template.name not in {"notebook.html", "attribution.html"}:  # which lie in pages of others
            assert "style=" not in template.read_text(encoding="utf-8")


def test_names_of_facts_may_repeat_in_pairs() -> None:
    facts = _environment().get_template("macros.html").module.facts  # type: ignore[attr-defined]
    assert facts({"a": 1, "b": 2}) == facts([("a", 1), ("b", 2)])
    assert re.findall(r"<td>(.*?)</td>", facts([("cat", "1"), ("cat", "<2>")])) == ["1", "&lt;2&gt;"]


def test_pages_of_ours_are_told_by_their_beginning() -> None:
    assert render_page("base.html").encode().startswith(PAGE)


def test_data_cannot_end_its_element() -> None:
    page = render_page("index.html", {"maps": ["</script><b>"], "labels": []}, **LISTED)
    assert "</script><b>" not in page


def test_what_a_template_needs_and_nobody_gave_is_an_error(tmp_path: Path) -> None:
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError):
        write_page(tmp_path / "page.html", "index.html", cards=[], verdicts={})
    assert list(tmp_path.iterdir()) == []

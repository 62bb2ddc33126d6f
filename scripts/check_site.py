"""Fails when the built documentation loads anything from elsewhere: scripts, styles, fonts or pictures.

Links that a reader may follow are fine; what a browser fetches by itself is not.

    python scripts/check_site.py site
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

LOADED = {
    "script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "video": "src",
    "audio": "src", "embed": "src", "object": "data", "use": "href", "image": "href",
}  # fmt: skip
ELSEWHERE = re.compile(r"^\s*(https?:)?//", re.IGNORECASE)
IN_STYLES = re.compile(r"""(?:url\(\s*['"]?|@import\s+['"])((?:https?:)?//[^'")\s]+)""", re.IGNORECASE)
FETCHING = {"mermaid": "mermaid diagrams are drawn by a script from elsewhere"}
"""Classes of elements for which the theme's script fetches another script."""


class Page(HTMLParser):
    """Collects what a browser would load by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attributes}
        address = values.get(LOADED.get(tag, ""), "")
        if ELSEWHERE.match(address) and values.get("rel") != "canonical":
            self.found.append(f"<{tag}> loads {address}")
        for name in values.get("class", "").split():
            if name in FETCHING:
                self.found.append(FETCHING[name])
        if "data-md-component" in values and values["data-md-component"] == "source":
            self.found.append("the link to the repository asks a server for its number of stars")
        self.found += [f"style loads {url}" for url in IN_STYLES.findall(values.get("style", ""))]


def problems(site: Path) -> Iterator[str]:
    """One sentence for everything that would be fetched from elsewhere."""
    for path in sorted(site.rglob("*")):
        name = path.relative_to(site)
        if path.suffix == ".html":
            page = Page()
            page.feed(path.read_text(encoding="utf-8"))
            yield from (f"{name}: {problem}" for problem in page.found)
        elif path.suffix in {".css", ".svg"}:
            yield from (f"{name}: loads {url}" for url in IN_STYLES.findall(path.read_text(encoding="utf-8")))


def main() -> None:
    site = Path(sys.argv[1])
    pages = len(list(site.rglob("*.html")))
    if not pages:
        sys.exit(f"There is no page in {site}; build it with `make docs`.")
    found = list(problems(site))
    if found:
        sys.exit("The documentation must not load anything from elsewhere:\n" + "\n".join(found))
    print(f"{pages} pages, nothing loaded from elsewhere")


if __name__ == "__main__":
    main()

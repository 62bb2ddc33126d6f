"""Draws the packages and which of them import which: docs/imports.svg, from the source itself.

    python scripts/draw_imports.py            # writes the drawing
    python scripts/draw_imports.py --check    # fails if the drawing is old

Imports at the top of a module count: those are what loading a package takes. Imports inside functions are
listed by `lazy_imports`, for the test of the architecture.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "protopfaith"
DRAWING = ROOT / "docs" / "imports.svg"
PACKAGE = "protopfaith"
BASE = "base"
"""The modules right below the package (errors, files, registry, ...), which everything may use."""

LEVELS = (
    ("cli",),
    ("serve",),
    ("show",),
    ("evaluation",),
    ("explanation", "conversion"),
    ("training",),
    ("network", "data", "shapley"),
    ("moments",),
    (BASE,),
)
"""From top to bottom: a package imports only from rows below its own."""
IMPORTING_LATE = ("cli",)
NOTES = {
    "cli": "one command per verb",
    "serve": "the explorer",
    "show": "figures, reports, pages",
    "evaluation": "is it faithful?",
    "explanation": "why this class?",
    "conversion": "networks of others",
    "training": "recipe, loop, run",
    "network": "ProtoPNet, encoders",
    "data": "images, splits",
    "shapley": "players, game, estimators",
    "moments": "networks on random variables",
    BASE: "errors, files, registry, ...",
}


@dataclass(frozen=True)
class Import:
    """One import of a module of this package by another."""

    importer: str
    imported: str
    line: int
    lazy: bool

    @property
    def counts(self) -> bool:
        """The command line imports inside its commands, so that `--help` stays quick: that is its way."""
        return not self.lazy or package_of(self.importer) in IMPORTING_LATE

    @property
    def packages(self) -> tuple[str, str]:
        return package_of(self.importer), package_of(self.imported)


def package_of(module: str) -> str:
    """`protopfaith.shapley.game` is in `shapley`; modules without a package are the base.

    >>> package_of("protopfaith.shapley.game"), package_of("protopfaith.errors")
    ('shapley', 'base')
    """
    name = module.split(".")[1] if "." in module else ""
    return name if (SOURCE / name / "__init__.py").is_file() and name else BASE


def imports() -> list[Import]:
    """All imports between modules of the package, those inside functions marked as lazy.

    The package's own `__init__` and `__main__` are in none of these packages, and are left out.
    """
    apart = {SOURCE / "__init__.py", SOURCE / "__main__.py"}
    return [
        found for path in sorted(SOURCE.rglob("*.py")) if path not in apart for found in _imports_of(path)
    ]


def edges() -> set[tuple[str, str]]:
    """(importer, imported) for packages: at the top of modules, and in the commands of the command line."""
    return {found.packages for found in imports() if found.counts and len(set(found.packages)) == 2}


def lazy_imports() -> set[tuple[str, str]]:
    """(importing module, imported package) for imports inside functions that leave their package."""
    return {
        (found.importer, package_of(found.imported))
        for found in imports()
        if not found.counts and len(set(found.packages)) == 2
    }


def _imports_of(path: Path) -> Iterator[Import]:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    yield from _walk(ast.parse(path.read_text(encoding="utf-8")), module, lazy=False)


def _walk(node: ast.AST, module: str, lazy: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue  # for the type checker alone
        if isinstance(child, ast.Import | ast.ImportFrom):
            for imported in _modules(child):
                yield Import(module, imported, child.lineno, lazy)
        inside = lazy or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _walk(child, module, inside)


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif node.module == PACKAGE:  # from protopfaith import shapley
        names = [f"{PACKAGE}.{alias.name}" for alias in node.names]
    else:
        names = [node.module or ""]
    return [name for name in names if name.split(".")[0] == PACKAGE]


# The drawing

WIDTH, HEIGHT, ROW, BOX = 760, 44, 84, 210
STYLE = """
text { font: 14px sans-serif; text-anchor: middle; fill: #222 }
text.note { font-size: 11px; fill: #555 }
rect { fill: #e6f2f0; stroke: #00796b }
path { fill: none; stroke: #607d8b; stroke-width: 1.2; marker-end: url(#tip); opacity: 0.75 }
path.wrong { stroke: #c62828; stroke-width: 2; opacity: 1 }
"""


def draw() -> str:
    """The drawing as SVG: an arrow from each package to those that it imports, upward ones in red.

    Everything imports the base, so those arrows are left out, as are those to a package that is reached
    through another.
    """
    present = {package for edge in edges() for package in edge}
    rows = [[package for package in level if package in present] for level in LEVELS]
    rows = [row for row in rows if row]
    places = {package: _place(row, i, j) for i, row in enumerate(rows) for j, package in enumerate(row)}
    missing = sorted(present - places.keys())
    if missing:
        sys.exit(f"{', '.join(missing)} has no place in LEVELS of scripts/draw_imports.py; give it one.")
    arrows = sorted(_direct({edge for edge in edges() if BASE not in edge}))
    height = ROW * len(rows)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L8 4L0 8z" style="fill:#607d8b;stroke:none"/></marker></defs>',
        f"<style>{STYLE}</style>",
        '<rect width="100%" height="100%" style="fill:#fff;stroke:none"/>',
        *(_arrow(places, edge) for edge in arrows),
        *(_box(package, place) for package, place in places.items()),
        "</svg>\n",
    ])  # fmt: skip


def _direct(arrows: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Without arrows that a longer way of arrows stands for."""
    return {edge for edge in arrows if not _reachable(arrows - {edge}, *edge)}


def _reachable(arrows: set[tuple[str, str]], start: str, goal: str) -> bool:
    seen, todo = {start}, [start]
    while todo:
        package = todo.pop()
        following = {there for here, there in arrows if here == package} - seen
        seen |= following
        todo += following
    return goal in seen


def _place(row: list[str], i: int, j: int) -> tuple[float, float]:
    """The middle of a box."""
    return WIDTH * (j + 0.5) / len(row), ROW * i + ROW / 2


def _box(package: str, place: tuple[float, float]) -> str:
    x, y = place
    return (
        f'<rect x="{x - BOX / 2:g}" y="{y - HEIGHT / 2:g}" width="{BOX}" height="{HEIGHT}" rx="6"/>'
        f'<text x="{x:g}" y="{y - 2:g}">{package}</text>'
        f'<text class="note" x="{x:g}" y="{y + 14:g}">{NOTES.get(package, "")}</text>'
    )


def _arrow(places: dict[str, tuple[float, float]], edge: tuple[str, str]) -> str:
    (x1, y1), (x2, y2) = places[edge[0]], places[edge[1]]
    if y2 <= y1:  # upward or sideways: what the architecture does not allow
        return f'<path class="wrong" d="M{x1:g} {y1 - HEIGHT / 2:g}L{x2:g} {y2 + HEIGHT / 2:g}"/>'
    start, end = y1 + HEIGHT / 2, y2 - HEIGHT / 2
    bend = (BOX / 2 + 30) if abs(x2 - x1) < BOX / 2 and y2 - y1 > 1.5 * ROW else 0  # around boxes between
    middle = (start + end) / 2
    return f'<path d="M{x1:g} {start:g}C{x1 + bend:g} {middle:g} {x2 + bend:g} {middle:g} {x2:g} {end:g}"/>'


def main() -> None:
    drawing = draw()
    if "--check" not in sys.argv:
        DRAWING.write_text(drawing, encoding="utf-8")
        return
    if not DRAWING.is_file() or DRAWING.read_text(encoding="utf-8") != drawing:
        sys.exit("docs/imports.svg is older than the imports; run `make drawing` and commit it.")


if __name__ == "__main__":
    main()

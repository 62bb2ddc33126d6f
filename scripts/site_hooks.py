"""What the documentation site makes while it is built: API and command pages, and formulas as MathML.

The API pages come from the packages' `__all__`, so that a name that moves or is added needs no edit here.
"""

from __future__ import annotations

import contextlib
import html
import importlib
import inspect
import io
import logging
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import typer
from latex2mathml.converter import convert
from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PACKAGE = "protopfaith"
WITHOUT_PAGE = ("cli",)  # the command line has a page of its own

log = logging.getLogger("mkdocs.hooks.protopfaith")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Puts the API's pages, one per package, where the navigation says `api/`; examples become code."""
    config.markdown_extensions.append(ExamplesAsCode())  # type: ignore[arg-type]
    pages = [{"Overview": "api/index.md"}, *({folder: f"api/{folder}.md"} for folder in folders())]
    for section in config.nav or []:
        for entry in next(iter(section.values())) if isinstance(next(iter(section.values())), list) else []:
            if entry.get("API") == "api/":
                entry["API"] = pages
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that no one writes by hand, and those that lie at the top of the repository."""
    pages = {"api/index.md": overview(), "command-line.md": command_line()}
    pages |= {f"api/{folder}.md": api_page(folder) for folder in folders()}
    pages |= {f"{name.lower()}.md": top_level(f"{name}.md") for name in ("CONTRIBUTING", "CHANGELOG")}
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_content(html: str, **_: Any) -> str:
    """Formulas, which arithmatex has marked, become MathML, which browsers draw without a script."""
    return re.sub(r'<(span|div) class="arithmatex">(.*?)</\1>', _formula, html, flags=re.DOTALL)


def _formula(found: re.Match[str]) -> str:
    display = found.group(1) == "div"
    source = html.unescape(found.group(2)).strip()[2:-2]  # without \( and \), or \[ and \]
    drawn = convert(source, display="block" if display else "inline")
    if "\\" in drawn:
        log.warning("A formula has a command that cannot be drawn: %s", source)
    return drawn


class ExamplesAsCode(Extension):
    """Docstrings have their examples as they are, without a fence: `>>>` begins one, a blank line ends it."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.preprocessors.register(_Fence(md), "examples", 1000)


class _Fence(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        fenced, in_fence, in_example = [], False, False
        for line in [*lines, ""]:
            in_fence ^= line.lstrip().startswith("```")
            if line.startswith(">>> ") and not in_fence and not in_example:
                in_example = True
                fenced.append("```python")
            elif in_example and not line.strip():
                in_example = False
                fenced.append("```")
            fenced.append(re.sub(r"\s*# doctest: .*$", "", line) if in_example else line)
        return fenced


# The API


def folders() -> list[str]:
    """The packages right below the top one that have names for others."""
    top = importlib.import_module(PACKAGE)
    names = [module.name for module in pkgutil.iter_modules(top.__path__) if module.ispkg]
    return [name for name in names if name not in WITHOUT_PAGE]


def api_page(folder: str) -> str:
    """One package: its docstring, its names, and those that only its subpackages offer."""
    package = importlib.import_module(f"{PACKAGE}.{folder}")
    parts = [f"# {PACKAGE}.{folder}", inspect.getdoc(package) or ""]
    seen: set[int] = set()
    for module in _packages(package):
        names = [name for name, thing in _public(module) if id(thing) not in seen or not callable(thing)]
        seen |= {id(thing) for _, thing in _public(module)}
        if module is not package and names:
            parts += [f"## {module.__name__}", inspect.getdoc(module) or ""]
        elif names:
            parts += ["## Names"]
        parts += [f"::: {module.__name__}.{name}" for name in names]
    return "\n\n".join(parts) + "\n"


def overview() -> str:
    """What `import protopfaith as pf` offers, and the packages."""
    top = importlib.import_module(PACKAGE)
    lines = ["# API", "", "Everything here is made from the docstrings.", ""]
    rows = [row for name in getattr(top, "__all__", []) if (row := _top_name(top, name))]
    if rows:
        lines += ["With `import protopfaith as pf`:", "", "| name | what it is |", "| --- | --- |", *rows, ""]
    lines += ["| package | what it holds |", "| --- | --- |"]
    for folder in folders():
        summary = _first_line(importlib.import_module(f"{PACKAGE}.{folder}"))
        lines.append(f"| [`{PACKAGE}.{folder}`]({folder}.md) | {summary} |")
    return "\n".join(lines) + "\n"


def _top_name(top: ModuleType, name: str) -> str | None:
    thing = getattr(top, name)
    if not callable(thing):
        return None
    home = next((folder for folder in folders() if thing.__module__.startswith(f"{PACKAGE}.{folder}.")), None)
    shown = f"[`pf.{name}`]({home}.md#{PACKAGE}.{home}.{name})" if home else f"`pf.{name}`"
    return f"| {shown} | {_first_line(thing)} |"


def _packages(package: ModuleType) -> Iterator[ModuleType]:
    yield package
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if module.ispkg:
            yield importlib.import_module(module.name)


def _public(module: ModuleType) -> list[tuple[str, Any]]:
    """The names of `__all__` but for submodules, which have their own section."""
    named = [(name, getattr(module, name)) for name in getattr(module, "__all__", ())]
    return [(name, thing) for name, thing in named if not inspect.ismodule(thing)]


def _first_line(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")


# The command line


def command_line() -> str:
    """Every command with its options, from the command line itself."""
    group = typer.main.get_command(importlib.import_module(f"{PACKAGE}.cli.app").app)
    parts = ["# Command line", group.help or "", "Each command explains itself with `--help`."]
    for name, command in sorted(_commands(group, PACKAGE)):
        parts += [f"## {name}", _plain(command.help), _options(command)]
    return "\n\n".join(parts) + "\n"


def _commands(command: Any, path: str) -> Iterator[tuple[str, click.Command]]:
    children = getattr(command, "commands", None)
    if not children or (command.invoke_without_command and path != PACKAGE):
        yield path, command
    for name, child in (children or {}).items():
        if not child.hidden:
            yield from _commands(child, f"{path} {name}")


def _options(command: Any) -> str:
    with contextlib.redirect_stdout(io.StringIO()):
        command.get_help(click.Context(command))  # fills in the names of what is registered
    rows = ["| option | meaning |", "| --- | --- |"]
    for parameter in command.params:
        names = ", ".join(f"`{name}`" for name in parameter.opts)
        shown = f"`{parameter.name.upper()}`" if parameter.param_type_name == "argument" else names
        rows.append(f"| {shown} | {_plain(getattr(parameter, 'help', ''))} |")
    return "\n".join(rows)


def _plain(text: str | None) -> str:
    """Help texts as Markdown: one paragraph, no table bars, no HTML."""
    return html.escape(" ".join((text or "").split()), quote=False).replace("|", "\\|")


def top_level(name: str) -> str:
    """A page of the repository's top folder, with its links as they are seen from the documentation."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return re.sub(r"\]\(docs/", "](", text)

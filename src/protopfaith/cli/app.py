"""The program: its commands, how it prints and how it fails."""

from __future__ import annotations

import io
import logging
import os
import re
import shlex
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from typer.core import TyperCommand, TyperGroup

from protopfaith import __version__
from protopfaith.allocation import keep_freed_memory
from protopfaith.arguments import named
from protopfaith.cli.names import PLACES, registered
from protopfaith.errors import ProtoPFaithError
from protopfaith.interruption import INTERRUPTION
from protopfaith.limits import check_limits
from protopfaith.registry import EXTENSIONS_VARIABLE
from protopfaith.registry import extensions as imported_modules

# Heavy packages are imported inside the commands: --help answers at once.


def forget_odd_sizes() -> None:
    """Takes sizes of the terminal out of the environment that would leave no room for a word, or that are
    no numbers: some programs say 0 where they do not know."""
    for name in ("COLUMNS", "LINES"):
        text = os.environ.get(name, "")
        if not (text.isascii() and text.isdecimal() and len(text) < 7 and int(text) >= LEAST[name]):
            os.environ.pop(name, None)


class PlainConsole(Console):
    """Prints names of others, as of classes or in tables, so that nothing in them drives the terminal."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*map(_printable, objects), **options)


def _printable(shown: Any) -> Any:
    """The same text, or table, with control characters spelled out."""
    if isinstance(shown, str):
        return "\n".join(named(line) for line in shown.split("\n"))
    if isinstance(shown, Table):
        shown.title = _printable(shown.title)
        for column in shown.columns:
            column.header, column._cells = _printable(column.header), list(map(_printable, column.cells))
    return shown


LEAST = {"COLUMNS": 20, "LINES": 1}
forget_odd_sizes()
console = PlainConsole(emoji=False)  # a name such as a:x:b stays as it is
errors = PlainConsole(stderr=True, emoji=False)
ORDER = (  # of work
    "demo",
    "recipes",
    "encoders",
    "data",
    "train",
    "convert",
    "evaluate",
    "predict",
    "explain",
    "report",
    "summarize",
    "prototypes",
    "parts",
    "faithfulness",
    "serve",
    "prune",
)


class InOrder(TyperGroup):
    """Lists its commands in the order of work."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=lambda name: ORDER.index(name) if name in ORDER else 99)


app = typer.Typer(
    cls=InOrder,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Prototype networks and explanations that can be checked: train, explain, measure.",
)


# Not "lightning" itself, which sets its own level when it is imported.
NOISY = (
    *(f"lightning.{part}.utilities.rank_zero" for part in ("fabric", "pytorch")),
    "PIL",
    "matplotlib",
    "highdicom",
)


NO_GLYPH = r"Glyph \d+ .*missing from"


class Lines(logging.Handler):
    """What is logged, as lines that are never wrapped in the middle of a path."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.name.startswith("pydicom"):
            return  # a traceback for each decoder that it tried; what it raises is told in a sentence
        if record.levelno < logging.WARNING and record.name.startswith("torch."):
            return  # its statistics at exit, which it keeps to itself unless it is ended while it is loaded
        text = self.format(record)
        if record.levelno >= logging.WARNING:
            _print_error("Note" if record.levelno == logging.WARNING else "Error", text)
        else:
            note(text)


def main() -> None:
    """Runs the command line; a ProtoPFaithError becomes one sentence and exit code 1."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[Lines()])
    for noisy in NOISY:
        logging.getLogger(noisy).setLevel(logging.WARNING)
    for stream in (sys.stdout, sys.stderr):  # names that are no UTF-8 are printed, not raised
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    warnings.filterwarnings("ignore", NO_GLYPH)  # of which `show.fonts` says one sentence
    os.environ["MPLBACKEND"] = "agg"  # figures become files; a backend that is not there would be an error
    keep_freed_memory()
    try:
        _check_folder()
        _refuse_empty(sys.argv[1:])
        check_limits()
        app()
    except ProtoPFaithError as error:
        _print_error("Error", str(error))
        sys.exit(1)
    except KeyboardInterrupt:
        _end_interrupted()
    except SystemExit as end:
        if end.code != 130:  # which Typer makes of Ctrl-C, without a word
            raise
        _end_interrupted()
    except BrokenPipeError:  # the reader of our output has gone, as head does
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115  (nothing fails when Python flushes it)
        sys.exit(1)
    except Exception as error:
        if INTERRUPTION.received:  # a library that was just being loaded may make something else of it
            _end_interrupted()
        from protopfaith.crashes import unexpected

        _print_error("Error", unexpected(error))
        if isinstance(error, OSError):  # perhaps of our output itself: Python flushes it once more
            sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
        sys.exit(1)


def _end_interrupted() -> NoReturn:
    if not INTERRUPTION.is_told:
        errors.print("Interrupted.")
    sys.exit(INTERRUPTION.code)


def _check_folder() -> None:
    """Raises if the current folder is gone: libraries that are imported later would end the process."""
    try:
        Path.cwd()
    except OSError as error:
        raise ProtoPFaithError(
            "The folder that this command was called in is not there any more, or may not be read; change to "
            "another one (cd), then run it again."
        ) from error


def _refuse_empty(arguments: list[str]) -> None:
    """Raises if an argument is empty: of paths that would be the current folder, which nobody means."""
    if "" in arguments:
        place = arguments.index("")
        before = f" after {arguments[place - 1]}" if place else ""
        raise ProtoPFaithError(f"Argument {place + 1}{before} is '' (empty); give a value, or leave it out.")


def _print_error(kind: str, text: str) -> None:
    # Escaped: square brackets, as in paths or 'protopfaith[timm]', are text and no markup.
    line = " ".join(named(part) for part in text.splitlines())
    line = re.sub(r"\S{500,}", lambda found: f"{found[0][:200]}...{found[0][-200:]}", line)
    errors.print(f"[bold red]{kind}:[/] {escape(line)}", soft_wrap=True, highlight=False)


def _version(wanted: bool) -> None:
    if wanted:
        console.print(f"protopfaith {__version__}")
        raise typer.Exit


def import_extensions(names: list[str]) -> None:
    """Imports modules of the user's, from the current folder or installed, for what they register."""
    if names and "" not in sys.path:
        sys.path.append("")  # the current folder, which an installed program does not look into
    for name in names:
        missing = ProtoPFaithError(
            f"There is no module {name!r} to import; name a Python file of this folder without its .py, "
            "or an installed package."
        )
        if not all(part.isidentifier() for part in name.split(".")):
            raise missing
        try:
            import_module(name)
        except ModuleNotFoundError as error:
            if not f"{name}.".startswith(f"{error.name}."):
                raise ProtoPFaithError(
                    f"The module {name!r} imports {error.name!r}, which is not installed; install it first."
                ) from error
            raise missing from error
        except ProtoPFaithError:
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # the module is the user's, and so is what it raises, or that it exits
            from protopfaith.crashes import logged

            raise ProtoPFaithError(
                f"The module {name!r} fails while it is imported ({logged(error)}); correct it."
            ) from error


@app.callback()
def options(
    extensions: Annotated[
        list[str] | None,
        typer.Option(
            "--import",
            metavar="MODULE",
            envvar=EXTENSIONS_VARIABLE,
            help="A module of your own that adds encoders, data sets, estimators, ... May be repeated.",
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the program itself."""
    import_extensions(extensions or [])
    if extensions:
        os.environ[EXTENSIONS_VARIABLE] = " ".join(extensions)  # for processes and workers


class NamesInHelp(TyperCommand):
    """A command whose help lists what is registered, where its options say {REGISTRY}."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for parameter in self.params:
            text = getattr(parameter, "help", None) or ""
            for registry in PLACES:
                if f"{{{registry}}}" in text:
                    text = text.replace(f"{{{registry}}}", ", ".join(registered(registry)))
                    parameter.help = text  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)


@contextmanager
def interruptible(kept: Callable[[], str]) -> Iterator[None]:
    """Work that may be interrupted (Ctrl-C): then `kept` says what is kept and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        errors.print(f"Interrupted. {kept()}", soft_wrap=True, highlight=False, markup=False)
        INTERRUPTION.is_told = True
        raise typer.Exit(130) from None


def same_command() -> str:
    """This command, to be typed again."""
    return f"{called_as()} {shlex.join(sys.argv[1:])}"


def next_command(*words: object) -> str:
    """A command of this program that the user may type next, with the modules that this one imported."""
    imported = [word for name in imported_modules() for word in ("--import", name)]
    return f"{called_as()} {shlex.join([*imported, *map(str, words)])}"


def called_as() -> str:
    """What to type for this program: its name, or the way it was called where that is not on the path."""
    if Path(sys.argv[0]).name == "__main__.py":
        return "python -m protopfaith"
    return "protopfaith" if shutil.which("protopfaith") else sys.argv[0]


def note(text: str) -> None:
    """A line about what is going on, beside the output."""
    errors.print(text, soft_wrap=True, highlight=False, markup=False)


def say(text: str) -> None:
    """A line for people, as it is: never wrapped in the middle of a path, square brackets are no markup."""
    console.print(text, soft_wrap=True, highlight=False, markup=False)


def fail_for(problems: list[str]) -> None:
    """Lists what went wrong, after everything else was done, and says so in the exit code."""
    for problem in problems:
        _print_error("Failed", problem)
    if problems:
        raise typer.Exit(1)

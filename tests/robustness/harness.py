"""Runs the program on one bad (or unusual) input inside this process, and judges how it behaved."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LIMIT = float(os.environ.get("ROBUSTNESS_LIMIT", "300"))  # seconds; a hang takes longer on any machine
UNEXPECTED = "unexpected"  # the word of the sentence that stands for a bug of ours


class TookTooLongError(BaseException):
    """Not an Exception: nothing catches it on the way."""


@dataclass
class Place:
    """A folder of its own for one case, with what a user would have there, copied when it is asked for."""

    folder: Path
    template: Path

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def copy(self, name: str, to: str | None = None) -> Path:
        """A file or folder of the template."""
        target = self.folder / (to or name)
        target.parent.mkdir(parents=True, exist_ok=True)
        source = self.template / name
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
        return target

    @property
    def run(self) -> Path:
        """A trained run that may be damaged."""
        folder = self.folder / "run"
        return folder if folder.exists() else self.copy("run")

    @property
    def image(self) -> Path:
        path = self.folder / "good.png"
        return path if path.exists() else self.copy("good.png")

    @property
    def images(self) -> Path:
        folder = self.folder / "images"
        return folder if folder.exists() else self.copy("images")

    def write(self, name: str, content: bytes | str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


Arguments = Callable[[Place], list[Any]]
Call = Callable[[Place], Any]


@dataclass(frozen=True)
class Case:
    """One input: `command` gives the arguments of the program, or `call` does something in Python."""

    name: str
    command: Arguments | None = None
    call: Call | None = None
    says: tuple[str, ...] = ()
    """Words that the message must have: the input, and what to do."""
    good: bool = False
    """It must be accepted."""
    keeps: tuple[str, ...] = ()
    """Files of the place that must stay as they are, besides those that came before the command."""
    check: Callable[[Place], None] | None = None
    """What must hold afterwards."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables of the environment, besides the usual ones."""


@dataclass
class Outcome:
    """`kind` is "fine", or what was wrong."""

    kind: str
    text: str = ""
    seconds: float = 0.0


@dataclass
class Done:
    code: int
    out: str
    err: str
    trace: str = ""
    changed: list[str] = field(default_factory=list)


def judge(case: Case, place: Place) -> Outcome:
    """Runs the case and says what was wrong with the answer, if anything."""
    begin = time.monotonic()
    try:
        with limited(LIMIT):
            found = _judge_command(case, place) if case.command else _judge_call(case, place)
    except TookTooLongError:
        found = Outcome("hang", f"more than {LIMIT} s")
    found.seconds = time.monotonic() - begin
    return found


def _judge_command(case: Case, place: Place) -> Outcome:
    assert case.command is not None
    arguments = [
        os.fsdecode(one) if isinstance(one, (bytes, Path)) else str(one) for one in case.command(place)
    ]
    before = fingerprints(place.folder)
    done = run_program(place.folder, arguments, case.environment)
    text = f"$ {' '.join(arguments)}\n{done.out[-1500:]}{done.err[-3000:]}{done.trace}"
    if done.trace or "Traceback (most recent call last)" in done.out + done.err:
        return Outcome("traceback", text)
    if case.good:
        return Outcome("refused", text) if done.code else _afterwards(case, place, before, text)
    if not done.code:
        return Outcome("accepted", text)
    if UNEXPECTED in (done.out + done.err).lower():
        return Outcome("unexpected", text)
    told = plain(done.err)
    sentences = [
        line for line in told.splitlines() if re.search(r"(Error|Failed|Usage|Invalid|No such)", line)
    ]
    if not sentences:
        return Outcome("no sentence", text)
    if ".partial" in told:
        return Outcome("names a partial file", text)
    missing = [word for word in case.says if word.lower() not in " ".join(told.split()).lower()]
    if missing:
        return Outcome("does not say", f"{missing}\n{text}")
    return _afterwards(case, place, before, text)


def _afterwards(case: Case, place: Place, before: dict[str, str], text: str) -> Outcome:
    after = fingerprints(place.folder)
    changed = [name for name, digest in before.items() if after.get(name) != digest and _input(name)]
    if "--resume" in text:  # which may write a better model
        changed = [name for name in changed if not name.endswith("model.safetensors")]
    if changed:
        return Outcome("changed an input", f"{changed}\n{text}")
    left = [name for name in after if name.endswith(".partial") and name not in before]
    if left:
        return Outcome("left a partial file", f"{left}\n{text}")
    if case.check is not None:
        try:
            case.check(place)
        except AssertionError as error:
            return Outcome("wrong afterwards", f"{error}\n{text}")
    return Outcome("fine", text)


def _input(name: str) -> bool:
    """What the program may write itself, and therefore change."""
    return not re.search(
        r"(explanations/|explained|prototypes/|faithfulness|evaluation/|tensorboard|curves\.png|last\.safetensors"
        r"|\.csv$|^out/|model\.safetensors\.lock|reference\.json$|\.lock$|cache/|\.log$)",
        name,
    )


def _judge_call(case: Case, place: Place) -> Outcome:
    from protopfaith.errors import ProtoPFaithError

    assert case.call is not None
    try:
        case.call(place)
    except ProtoPFaithError as error:
        text = str(error)
        if case.good:
            return Outcome("refused", text)
        missing = [word for word in case.says if word.lower() not in text.lower()]
        if missing:
            return Outcome("does not say", f"{missing}\n{text}")
        if len(text) > 1500:
            return Outcome("long message", text[:300])
        return Outcome("fine", text)
    except (TypeError, ValueError) as error:
        # A plain exception is fine where it is a sentence that our code wrote.
        ours = "protopfaith" in traceback.extract_tb(error.__traceback__)[-1].filename
        bare = case.good or not ours or len(str(error).split()) < 4
        return Outcome("traceback" if bare else "fine", "".join(traceback.format_exception(error))[-3000:])
    except Exception as error:
        return Outcome("traceback", "".join(traceback.format_exception(error))[-3000:])
    return Outcome("fine") if case.good else Outcome("accepted", case.name)


def run_program(folder: Path, arguments: list[str], variables: Mapping[str, str] | None = None) -> Done:
    """The program in `folder`, inside this process; `trace` is what a terminal would show of an exception."""
    from protopfaith.cli import main

    out, err = Terminal(), Terminal()
    before, argv, path, environment = Path.cwd(), sys.argv, list(sys.path), dict(os.environ)
    code: Any = 0
    trace = ""
    os.environ |= {"COLUMNS": "400", **(variables or {})}
    os.chdir(folder)
    sys.argv = ["protopfaith", *arguments]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as stop:
        code = stop.code
    except Exception as error:
        code, trace = 1, "".join(traceback.format_exception(error))[-3000:]
    finally:
        os.chdir(before)
        sys.argv, sys.path[:] = argv, path
        os.environ.clear()
        os.environ.update(environment)
    return Done(int(code or 0), out.getvalue(), err.getvalue(), trace)


class Terminal(io.TextIOWrapper):
    """Standard output as a program has it: UTF-8, and what is no character stays a byte."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="strict", newline="")

    def getvalue(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]


def plain(text: str) -> str:
    """Without colors and frames."""
    return re.sub(r"\x1b\[[0-9;]*m|[│╭╮╰╯─]", "", text)


def fingerprints(folder: Path) -> dict[str, str]:
    """The content of every plain file."""
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            if os.path.isfile(path) and not os.path.islink(path):
                try:
                    with open(path, "rb") as file:
                        found[os.path.relpath(path, folder)] = hashlib.sha256(file.read()).hexdigest()
                except OSError:
                    continue
    return found


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises in the middle of whatever takes longer."""

    def stop(*_: object) -> None:
        raise TookTooLongError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

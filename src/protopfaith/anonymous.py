"""Names of files in what is given away: never whole paths, and on request no names at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from protopfaith.arguments import named
from protopfaith.csvfile import write_rows
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import begins

FORMULA = ("=", "+", "-", "@", "\t", "\r")
KEY = b"name,file"
"""What a key file begins with."""


def public_names(paths: Iterable[Path | str], *, anonymous: bool = False) -> list[str]:
    """What files are called in results: their names, with as many parent folders as tell them apart; numbers
    if they are to stay unknown.

    Args:
        paths: the files, in order; equal ones get equal names
        anonymous: numbers instead

    >>> public_names(["/home/me/a/x.png", "/home/me/b/x.png", "/tmp/y.png"])
    ['a/x.png', 'b/x.png', 'y.png']
    >>> public_names(["/home/me/a/x.png", "/tmp/y.png"], anonymous=True)
    ['image-0001', 'image-0002']
    """
    found = [Path(path) for path in paths]
    different = list(dict.fromkeys(found))
    if anonymous:
        numbers = {path: f"image-{number:04d}" for number, path in enumerate(different, start=1)}
        return [numbers[path] for path in found]
    names = dict.fromkeys(different, 1)
    for _ in range(8):
        by_name: dict[tuple[str, ...], list[Path]] = {}
        for path in different:
            by_name.setdefault(_ending(path, names[path]), []).append(path)
        shared = [path for same in by_name.values() if len(same) > 1 for path in same]
        if not shared:
            break
        for path in shared:
            names[path] += 1
    return [named("/".join(_ending(path, names[path]))) for path in found]


def _ending(path: Path, count: int) -> tuple[str, ...]:
    parts = path.parts[1:] if path.is_absolute() else path.parts
    return tuple(parts[-count:])


def write_key(path: Path, files: Sequence[Path | str]) -> Path:
    """Which file has which number, for whoever may know: a CSV file that stays behind when results are given
    away, readable by its owner alone. A table of another kind is not overwritten."""
    if not begins(path, KEY):
        raise ProtoPFaithError(
            f"{named(path)} is there already and no key file of ours, so it is not overwritten; move it "
            "away, or give another name for the results."
        )
    names = public_names(files, anonymous=True)
    pairs = [(name, safe_cell(str(original))) for name, original in zip(names, files, strict=True)]
    write_rows(path, [("name", "file"), *pairs], private=True)
    return path


def without_path(text: str, path: Path, name: str) -> str:
    """A message in which `name` stands for a path, or for a file's name; its folder is left out.

    >>> without_path("/home/me/jane.png is empty", Path("/home/me/jane.png"), "image-0001")
    'image-0001 is empty'
    >>> without_path("/home/me/jane.png is empty", Path("/home/me/jane.png"), "me/jane.png")
    'me/jane.png is empty'
    """
    file = path.with_name(re.sub(r"(?<=.)#\d+$", "", path.name)) if path.name else path  # of a frame
    parts = [str(part) for one in (path, file) for part in (one.absolute(), one, one.name)]
    instead = {spelled: name for part in parts for spelled in (part, repr(part)[1:-1]) if part}
    parents = [parent for parent in (path.absolute().parent, path.parent) if len(parent.name) > 1]
    instead |= {str(parent): "..." for parent in parents}
    # All at once: a name may hold what is looked for. Whole words: a file may be called d.
    wanted = "|".join(re.escape(part) for part in sorted(instead, key=len, reverse=True))
    return re.sub(rf"(?<!\w)(?:{wanted})(?!\w)", lambda found: instead[found[0]], text) if instead else text


def safe_cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula.

    >>> safe_cell("=1+1"), safe_cell("cat")
    ("'=1+1", 'cat')
    """
    return f"'{text}" if text.startswith(FORMULA) else text

"""A CSV file that says something about images: its headings, its rows, and which column is which."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from protopfaith.arguments import shown
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import read_plain_text
from protopfaith.registry import did_you_mean

FILES = ("file", "path", "image", "filename", "image index", "image_index")
"""How the column of image files may be called, in any case; the first that is there counts."""
MOST_COLUMNS = 10_000
GROUPS = ("patient", "patient_id", "patient id", "patientid", "group", "subject")
"""And the column that says which images belong together."""


@dataclass(frozen=True)
class Table:
    """A CSV file, its headings as they are; they are found in any case."""

    path: Path
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...]  # of the rows in the file, as a spreadsheet shows them
    expected: str

    def column(self, name: str) -> int:
        """Where the column is that a user named."""
        place = self.known((name,))
        if place is None:
            raise ProtoPFaithError(
                f"{self.path} has no column {shown(name)}; {did_you_mean(name, self.header)}"
            )
        return place

    def known(self, names: Sequence[str]) -> int | None:
        """Where the first of these columns is, if any of them is there."""
        headings = [heading.lower() for heading in self.header]
        return next((headings.index(name.lower()) for name in names if name.lower() in headings), None)

    def needed(self, names: Sequence[str]) -> int:
        """Where the first of these columns is; raises if none of them is there."""
        place = self.known(names)
        if place is None:
            raise ProtoPFaithError(f"{self.path} has no column {names[0]!r}; give {self.expected}.")
        return place

    def about(self, row: Sequence[str], taken: Sequence[int | None]) -> dict[str, str]:
        """What a row says in columns other than those `taken`, by their headings in lower case."""
        cells = enumerate(zip(self.header, row, strict=True))
        return {
            name.lower(): value for place, (name, value) in cells if place not in taken and name and value
        }


def read_cells(path: Path, expected: str) -> dict[int, tuple[str, ...]]:
    """The rows of a CSV file that are not empty, by their numbers in it, counted from 1; with commas,
    semicolons or tabs between the cells.

    Args:
        path: of the file
        expected: what it should be, for the sentences about what is wrong
    """
    text = read_plain_text(path, expected)
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(text), strict=True))
    except csv.Error as error:
        why = "a quotation mark is never closed" if "end of data" in str(error) else str(error)
        raise ProtoPFaithError(f"{path} cannot be read as a table ({why}); give {expected}.") from error
    return {
        number: cells
        for number, row in enumerate(rows, start=1)
        if any(cells := tuple(cell.strip() for cell in row))
    }


def delimiter_of(text: str) -> str:
    """What stands between the cells of a table, by its first line: a comma where nothing else is more often
    there.

    >>> delimiter_of("file;label\\nbirds/1,5.png;bird")
    ';'
    """
    first = next((line for line in text.splitlines() if line.strip()), "")
    bare = re.sub(r'"[^"]*"', "", first)
    return max(",;\t", key=bare.count)


def read_table(path: Path, expected: str) -> Table:
    """A CSV file; raises if it is none, has no rows, a column twice, or rows of different lengths.

    Args:
        path: of the file
        expected: what it should be, for the sentences about what is wrong
    """
    cells = read_cells(path, expected)
    numbers, lines = tuple(cells), tuple(cells.values())
    if len(lines) < 2:
        raise ProtoPFaithError(f"{path} lists no images; give {expected}.")
    header = [heading.lower() for heading in lines[0]]
    if len(header) > MOST_COLUMNS:
        raise ProtoPFaithError(
            f"{path} has {len(header):,} columns, more than {MOST_COLUMNS:,}; give {expected}."
        )
    twice = [name for place, name in enumerate(header) if name and name in header[:place]]
    if twice:
        raise ProtoPFaithError(f"{path} has two columns named {shown(twice[0])}; keep one of them.")
    for number, row in zip(numbers[1:], lines[1:], strict=True):
        if len(row) != len(header):
            raise ProtoPFaithError(
                f"Row {number} of {path} has {len(row)} values for {len(header)} columns; correct it."
            )
    return Table(path, lines[0], lines[1:], numbers[1:], expected)

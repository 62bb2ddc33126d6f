"""Tables for other programs: the one place that writes CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from protopfaith.writing import atomic


def write_rows(path: Path | str, rows: Iterable[Sequence[object]], *, private: bool = False) -> None:
    """Writes a table, whole or not at all; names that are no UTF-8 are written, not raised.

    Args:
        path: of the file; one that is there is replaced
        rows: the headings first; texts of others are made safe before, see `protopfaith.anonymous.safe_cell`
        private: readable by its owner alone
    """
    with atomic(path) as partial:
        with partial.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
            csv.writer(file).writerows(rows)
        if private:
            partial.chmod(0o600)

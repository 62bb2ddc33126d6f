"""Tables for other programs."""

from __future__ import annotations

import csv
import stat
from pathlib import Path

from protopfaith.csvfile import write_rows


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "table.csv"
    write_rows(path, [("name", "count"), ('a "b", c', 3), ("two\nlines", "")])
    with path.open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["name", "count"], ['a "b", c', "3"], ["two\nlines", ""]]


def test_names_that_are_no_utf_8_are_written(tmp_path: Path) -> None:
    write_rows(tmp_path / "table.csv", [["caf\udce9.png"]])
    assert (tmp_path / "table.csv").read_text() == "caf\\udce9.png\n"


def test_a_private_table_is_its_owners(tmp_path: Path) -> None:
    write_rows(tmp_path / "key.csv", [["name"]], private=True)
    assert stat.S_IMODE((tmp_path / "key.csv").stat().st_mode) == 0o600

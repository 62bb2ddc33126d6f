from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protopfaith.data.table import Table, read_table
from protopfaith.errors import ProtoPFaithError

EXPECTED = "a table of images"
CELL = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), max_size=5)


def _table(folder: Path, text: str) -> Table:
    (folder / "t.csv").write_text(text, encoding="utf-8")
    return read_table(folder / "t.csv", EXPECTED)


def test_columns_are_found_in_any_case_and_the_first_name_wins(tmp_path: Path) -> None:
    table = _table(tmp_path, "Path,FILE,Sex\na,b,f\n")
    assert table.header == ("Path", "FILE", "Sex")
    assert table.needed(("file", "path")) == 1
    assert table.known(("SEX",)) == table.column("sex") == 2
    assert table.known(("age",)) is None


def test_what_else_is_known_leaves_out_what_is_taken_or_empty(tmp_path: Path) -> None:
    table = _table(tmp_path, "file,Sex,,age,site\na.png,f,lost,,north\n")
    assert table.about(table.rows[0], (0, None)) == {"sex": "f", "site": "north"}


def test_blank_lines_and_spaces_do_not_count(tmp_path: Path) -> None:
    assert _table(tmp_path, "file , label\n\n a.png,  x \n,\n").rows == (("a.png", "x"),)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "lists no images; give a table of images"),
        ("file,label\n", "lists no images"),
        ("file,File\na,b\n", "two columns named 'file'"),
        ("file,label\na\n", "Row 2 .* has 1 values for 2 columns"),
        ("\nfile,label\n\n,\na,x\n\nb,y,z\n", "Row 7 .* has 3 values for 2 columns"),
        ('file,label\n"a,b\n', "cannot be read as a table .a quotation mark is never closed"),
    ],
)
def test_bad_tables_are_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ProtoPFaithError, match=words):
        _table(tmp_path, text)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    table = _table(tmp_path, "file,patient\na,b\n")
    with pytest.raises(ProtoPFaithError, match="no column 'label'; give a table of images"):
        table.needed(("label", "class"))
    with pytest.raises(ProtoPFaithError, match="no column 'patent'; did you mean 'patient'"):
        table.column("patent")


@given(st.lists(st.tuples(CELL, CELL), min_size=1, max_size=4))
def test_rows_come_back_as_written(tmp_path_factory: pytest.TempPathFactory, rows: list) -> None:
    rows = [(f"{number}.png", *row) for number, row in enumerate(rows)]
    text = io.StringIO()
    csv.writer(text).writerows([("file", "a", "b"), *rows])
    assert _table(tmp_path_factory.mktemp("t"), text.getvalue()).rows == tuple(rows)

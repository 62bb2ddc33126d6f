"""Rows that were edited into what no explanation can say."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Bulk, open_bulk


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("total", float("nan"), "totals are no numbers"),
        ("probability", 7.0, "not between 0 and 1"),
        ("probability", float("nan"), "not between 0 and 1"),
        ("probabilities", [-1.0], "not between 0 and 1"),
        ("prediction", "no class", "column prediction has 'no class', which is no class"),
        ("class", "", "column class has '', which is no class"),
        ("position", 0, "positions of its rows"),
    ],
)
def test_an_edited_row_is_one_sentence(bulk: Bulk, tmp_path: Path, name: str, value: Any, words: str) -> None:
    folder = shutil.copytree(bulk.folder, tmp_path / "out")
    (part,) = folder.glob("part-*.parquet")
    table = parquet.read_table(part)
    column = [one if one is None else value for one in table[name].to_pylist()]
    edited = table.set_column(
        table.column_names.index(name),
        table.schema.field(name),
        pa.array(column, table.schema.field(name).type),
    )
    parquet.write_table(edited, part)
    with pytest.raises(ProtoPFaithError, match=rf"no readable part \(.*{words}.*\); delete it"):
        open_bulk(folder).row("3.png")

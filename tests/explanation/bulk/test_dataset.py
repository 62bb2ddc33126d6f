from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Bulk, open_bulk
from protopfaith.explanation.bulk.dataset import OPEN, begin
from protopfaith.explanation.bulk.explain import Work
from protopfaith.explanation.bulk.schema import COLUMNS


def test_others_open_it_in_one_line(bulk: Bulk) -> None:
    frame = pd.read_parquet(bulk.folder)
    assert list(frame["image"]) == list(bulk.frame()["image"])
    assert list(frame.columns) == list(COLUMNS)


def test_polars_opens_it_as_the_documentation_says(bulk: Bulk) -> None:
    polars = pytest.importorskip("polars")
    (files,) = re.findall(r'polars\.read_parquet\("out/([^"]+)"\)', documentation())
    frame = polars.read_parquet(bulk.folder / files)
    assert frame.columns == list(COLUMNS)
    assert frame["image"].to_list() == list(bulk.frame()["image"])


def test_duckdb_opens_it_as_the_documentation_says(bulk: Bulk) -> None:
    duckdb = pytest.importorskip("duckdb")
    (files,) = re.findall(r"DuckDB: FROM 'out/([^']+)'", documentation())
    table = duckdb.sql(f"FROM '{bulk.folder / files}'")
    assert table.columns == list(COLUMNS)
    assert [name for (name,) in table.project("image").fetchall()] == list(bulk.frame()["image"])


def documentation() -> str:
    return (Path(__file__).parents[3] / "docs" / "how-to" / "bulk.md").read_text(encoding="utf-8")


def test_it_opens_as_it_was_written(bulk: Bulk) -> None:
    assert open_bulk(bulk.folder).manifest == bulk.manifest


@pytest.mark.parametrize("content", ["", "{}", "[]", "3", '{"format": 1}', '{"format": 99}', "\0"])
def test_a_damaged_manifest_is_one_sentence(content: str, tmp_path: Path) -> None:
    (tmp_path / "_bulk.json").write_text(content)
    with pytest.raises(ProtoPFaithError, match=r"_bulk\.json"):
        open_bulk(tmp_path)


def test_classes_that_are_no_list_are_one_sentence(bulk: Bulk, tmp_path: Path) -> None:
    content = json.loads(bulk.manifest.to_json())
    (tmp_path / "_bulk.json").write_text(json.dumps({**content, "classes": "abc"}))
    with pytest.raises(ProtoPFaithError, match=r"_bulk\.json is damaged"):
        open_bulk(tmp_path)


def test_a_damaged_part_is_named(bulk: Bulk, tmp_path: Path) -> None:
    broken = begin(tmp_path, bulk.manifest)
    broken.part(0).write_bytes(b"PAR1")
    with pytest.raises(ProtoPFaithError, match="part-000000"):
        broken.table()


def test_foreign_parquet_files_are_left_alone(bulk: Bulk, tmp_path: Path) -> None:
    (tmp_path / "mine.parquet").write_bytes(b"PAR1")
    with pytest.raises(ProtoPFaithError, match="not ours"):
        begin(tmp_path, bulk.manifest)


def test_a_row_is_found_by_its_name(bulk: Bulk) -> None:
    assert bulk.row("3.png")["position"] == 4
    with pytest.raises(ProtoPFaithError, match=r"There is no image 'x\.png'"):
        bulk.row("x.png")


def begun_twice(bulk: Bulk, folder: Path) -> tuple[Work, Work, list[dict[str, Any]]]:
    """Two processes that each have three rows to go, and all rows."""
    rows = bulk.table().to_pylist()
    again = begin(folder, bulk.manifest)
    for row in rows[:2]:
        again.keep(row)
    first, second = (Work(again, [None] * len(rows), [0]) for _ in range(2))  # type: ignore[list-item]
    return first, second, rows


@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_shard_that_is_started_twice_keeps_all_rows(bulk: Bulk, tmp_path: Path, before: int) -> None:
    """The second process takes so many rows before the first one is done, the others afterwards."""
    first, second, rows = begun_twice(bulk, tmp_path)
    for row in rows[2 : 2 + before]:
        second.take(row)
    for row in rows[2:]:
        first.take(row)
    for row in rows[2 + before :]:
        second.take(row)
    assert open_bulk(tmp_path).table().equals(bulk.table())
    assert not (tmp_path / OPEN).exists()


def test_a_row_is_not_missed_when_its_part_is_finished_meanwhile(
    bulk: Bulk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process removes the folder between its making and the writing."""
    first, second, rows = begun_twice(bulk, tmp_path)
    for row in rows[2:-1]:
        first.take(row)
        second.take(row)
    make = Path.mkdir

    def make_and_finish(self: Path, **options: Any) -> None:
        make(self, **options)
        monkeypatch.undo()
        first.take(rows[-1])

    monkeypatch.setattr(Path, "mkdir", make_and_finish)
    second.take(rows[-1])
    assert open_bulk(tmp_path).table().equals(bulk.table())


def test_a_part_without_all_rows_stays_open(bulk: Bulk, tmp_path: Path) -> None:
    begun = begin(tmp_path, bulk.manifest)
    for row in bulk.table().to_pylist()[1:]:
        begun.keep(row)
    begun.finish(0)
    assert not begun.is_finished()
    assert begun.missing(0) == [0]


def test_there_is_at_least_one_class(bulk: Bulk, tmp_path: Path) -> None:
    content = json.loads(bulk.manifest.to_json())
    (tmp_path / "_bulk.json").write_text(json.dumps({**content, "classes": []}))
    with pytest.raises(ProtoPFaithError, match="classes makes no sense"):
        open_bulk(tmp_path)

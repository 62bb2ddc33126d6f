from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Bulk, open_bulk
from protopfaith.explanation.many.dataset import begin
from protopfaith.explanation.many.schema import COLUMNS


def test_others_open_it_in_one_line(bulk: Bulk) -> None:
    frame = pd.read_parquet(bulk.folder)
    assert list(frame["image"]) == list(bulk.frame()["image"])
    assert list(frame.columns) == list(COLUMNS)


def test_the_documentation_has_every_column() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "bulk.md").read_text(encoding="utf-8")
    for name, meaning in COLUMNS.items():
        assert f"| `{name}` | {meaning} |" in page


def test_it_opens_as_it_was_written(bulk: Bulk) -> None:
    assert open_bulk(bulk.folder).manifest == bulk.manifest


@pytest.mark.parametrize("content", ["", "{}", "[]", "3", '{"format": 1}', '{"format": 99}', "\0"])
def test_a_damaged_manifest_is_one_sentence(content: str, tmp_path: Path) -> None:
    (tmp_path / "_bulk.json").write_text(content)
    with pytest.raises(ProtoPFaithError, match=r"_bulk\.json"):
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

"""Rows: what is in them, and what is noticed when it is not."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

from protopfaith.explanation import Explanation
from protopfaith.explanation.bulk.schema import (
    COLUMNS,
    check_part,
    check_values,
    failed_row,
    row_of,
    schema,
)


def opened(table: pa.Table) -> Any:
    """As a Parquet file."""
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    return parquet.ParquetFile(buffer)


@pytest.fixture
def table(explanation: Explanation) -> pa.Table:
    """An explanation, and an image that has none."""
    rows = [
        row_of(explanation, 0, labels=False, inside=(0.75, 0.5)),
        failed_row("broken.png", 1, "It is no image."),
    ]
    return pa.Table.from_pylist(rows, schema=schema(explanation.class_names, {"run": "birds"}))


def test_rows_come_back_as_they_were(explanation: Explanation, table: pa.Table) -> None:
    good, bad = opened(table).read().to_pylist()
    assert list(good) == list(bad) == list(COLUMNS)
    assert torch.equal(torch.tensor(good["values"]), explanation.class_map.values.float())
    assert good["decided"] == (~explanation.class_map.undecided).tolist()
    assert good["prediction"] == explanation.class_names[explanation.prediction]
    assert {one["output"] for one in good["others"]} == set(explanation.other_maps)
    for row, one in zip(good["prototypes"], explanation.evidence, strict=True):
        assert (row["prototype"], row["distance"]) == (one.prototype, one.distance)
        assert torch.equal(torch.tensor(row["values"]), one.test.values.float())
    assert (good["inside"], good["box_share"], good["labels"]) == (0.75, 0.5, None)
    assert {name for name, value in bad.items() if value is not None} == {
        "position",
        "image",
        "error",
        "version",
    }


def test_regions_of_an_image_of_its_own_are_in_its_row(explanation: Explanation) -> None:
    row = row_of(explanation, 0, labels=True, inside=(float("nan"), 0.0))
    assert torch.equal(torch.tensor(row["labels"]), explanation.class_map.players.labels.flatten())
    assert row["inside"] is None  # nothing positive, or a box outside the image


def test_classes_are_in_the_metadata(explanation: Explanation, table: pa.Table) -> None:
    known = json.loads(opened(table).schema_arrow.metadata[b"protopfaith"])
    assert known["classes"] == list(explanation.class_names)
    assert known["run"] == "birds"


def test_a_part_has_its_rows_and_columns(table: pa.Table) -> None:
    expected = table.schema
    check_part(opened(table), expected, 2)
    check_part(opened(table.append_column("mine", pa.array([1, 2]))), expected, 2)
    with pytest.raises(ValueError, match="it has 2 rows instead of 3"):
        check_part(opened(table), expected, 3)
    place = table.column_names.index("total")
    for wrong in (
        table.drop_columns(["total"]),
        table.set_column(place, "total", table["total"].cast(pa.float32())),
    ):
        with pytest.raises(ValueError, match="its column total is missing or of another type"):
            check_part(opened(wrong), expected, 2)


def test_every_region_of_what_was_explained_has_a_number(table: pa.Table) -> None:
    place, regions = table.column_names.index("values"), len(table["values"][0])
    check_values(table, regions)
    check_values(table, None)
    check_values(table.drop_columns(["values"]), regions)
    with pytest.raises(ValueError, match="no value for some region"):
        check_values(table, regions + 1)
    for values, words in ((None, "nothing in the column values"), ([float("nan")] * regions, "no numbers")):
        column = pa.array([values, None], pa.list_(pa.float32()))
        with pytest.raises(ValueError, match=words):
            check_values(table.set_column(place, "values", column), regions)


@pytest.mark.parametrize("name", ["class", "others", "standard_errors", "evaluations", "reached"])
def test_what_was_explained_lacks_nothing(table: pa.Table, name: str) -> None:
    place = table.column_names.index(name)
    empty = table.set_column(place, name, pa.nulls(2, table.schema.field(name).type))
    with pytest.raises(ValueError, match=f"nothing in the column {name}"):
        check_values(empty, None)


def test_every_value_has_its_error_and_every_row_its_name(table: pa.Table) -> None:
    place = table.column_names.index("decided")
    short = pa.array([[True], None], pa.list_(pa.bool_()))
    with pytest.raises(ValueError, match="not as many decided as values"):
        check_values(table.set_column(place, "decided", short), None)
    nameless = table.set_column(table.column_names.index("image"), "image", pa.array(["a.png", None]))
    with pytest.raises(ValueError, match="rows have no name"):
        check_values(nameless, None)


def test_the_documentation_has_every_column() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "bulk.md").read_text(encoding="utf-8")
    for name, meaning in COLUMNS.items():
        assert f"| `{name}` | {meaning} |" in page

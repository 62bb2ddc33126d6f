"""What a row holds, and how an explanation becomes one."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from protopfaith import __version__
from protopfaith.explanation.bulk.arrow import pyarrow_module
from protopfaith.explanation.decision import finding_output
from protopfaith.explanation.explanation import Explanation
from protopfaith.explanation.regions import RegionValues

FORMAT = 1
COLUMNS = {
    "position": "place of the image in the list of all, from 0",
    "image": "its name",
    "error": "why it could not be explained; null where it was",
    "prediction": "the most probable class",
    "probability": "of that class",
    "probabilities": "of all classes, in the order that the metadata of the file has",
    "class": "the class that is explained",
    "versus": "the class that it is compared with, if that was asked for",
    "output": "what the values add up to: margin, logit, versus or log_probability",
    "total": "what the values add up to, as a number",
    "gap": "their sum minus the total, before it was redistributed",
    "values": "Shapley values of the regions, row by row; positive is for the class",
    "standard_errors": "of the values; NaN where unknown",
    "decided": "whether the sign of a value is known",
    "others": "the same for the other outputs, and for each of several findings: output, total, gap, values, "
    "standard_errors, decided",
    "prototypes": "those of the class: prototype, distance, score, paper_score, weight, and total, gap, "
    "values, standard_errors, decided of its distance (negative is more similar)",
    "labels": "which region each pixel belongs to, row by row; null where regions are windows",
    "evaluations": "of the network",
    "precision": "relative error that was reached; NaN where unknown",
    "reached": "whether the precision asked for was reached",
    "rounding": "what 16-bit numbers changed, as a share of the total; null in float32",
    "nearest_distance": "how far the image is from what the network knows: in standard deviations around "
    "training images of the predicted class (in runs of earlier versions: to its nearest prototype)",
    "usual_distance": "99% of the validation images are nearer; null where unknown",
    "inside": "share of the positive evidence on the object's mask, or else in its boxes; null where none is "
    "known, or they lie outside the image",
    "box_share": "share of the image that mask or boxes cover: what evidence without preference has inside",
    "seconds": "that it took",
    "settings": "how it was computed, as JSON",
    "weights": "SHA-256 of the network",
    "version": "of protopfaith",
    "file_sha256": "of the image file, with #3 after it for its third frame; null with --anonymous and in "
    "data sets of earlier versions",
}
"""The columns and what they mean, as docs/how-to/bulk.md lists them."""
NEVER_NULL = {
    *("class", "output", "total", "values", "standard_errors", "decided", "others", "prototypes"),
    *("evaluations", "precision", "reached", "seconds"),
}
"""Of images that were explained."""
LATER = {"file_sha256"}
"""Which data sets of earlier versions lack."""
PROTOTYPE = ("distance", "score", "paper_score", "weight")


def schema(classes: tuple[str, ...], more: dict[str, Any]) -> Any:
    """The Arrow schema, with the classes and what else belongs to every row in its metadata."""
    pa = pyarrow_module()
    numbers, flags = pa.list_(pa.float32()), pa.list_(pa.bool_())
    shares = [
        ("total", pa.float64()),
        ("gap", pa.float64()),
        ("values", numbers),
        ("standard_errors", numbers),
        ("decided", flags),
    ]
    prototype = [("prototype", pa.int32()), *((name, pa.float64()) for name in PROTOTYPE), *shares]
    kinds = {
        "position": pa.int64(),
        "probabilities": numbers,
        "others": pa.list_(pa.struct([("output", pa.string()), *shares])),
        "prototypes": pa.list_(pa.struct(prototype)),
        "labels": pa.list_(pa.int32()),
        "evaluations": pa.int64(),
        "reached": pa.bool_(),
        **dict(shares),
    }
    texts = {"image", "error", "prediction", "class", "versus", "output", "settings", "weights", "version"}
    texts |= LATER
    fields = [(name, kinds.get(name, pa.string() if name in texts else pa.float64())) for name in COLUMNS]
    metadata = {"format": FORMAT, "classes": list(classes), **more}
    return pa.schema(fields, metadata={"protopfaith": json.dumps(metadata)})


def check_part(file: Any, expected: Any, rows: int) -> None:
    """Raises if a Parquet file has other rows or columns than a part of a data set; columns may be added.

    Args:
        file: what pyarrow has opened
        expected: the schema of the data set
        rows: how many there should be
    """
    if file.metadata.num_rows != rows:
        raise ValueError(f"it has {file.metadata.num_rows} rows instead of {rows}")
    for field in expected:
        place = file.schema_arrow.get_field_index(field.name)
        if place < 0 and field.name in LATER:
            continue
        if place < 0 or file.schema_arrow.field(place).type != field.type:
            raise ValueError(f"its column {field.name} is missing or of another type")


def completed(table: Any, expected: Any, columns: Sequence[str] | None = None) -> Any:
    """A table with nulls for columns that data sets of earlier versions lack.

    Args:
        table: rows
        expected: the schema of the data set
        columns: those that are wanted; None: all
    """
    pa = pyarrow_module()
    for name in sorted(LATER - set(table.column_names)):
        if columns is None or name in columns:
            field = expected.field(name)
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table


def check_values(table: Any, regions: int | None) -> None:
    """Raises if a row has no name, or an image that was explained has not one number for each region.

    Args:
        table: rows
        regions: of each image; None where each has its own
    """
    if "image" in table.column_names and table["image"].null_count:
        raise ValueError("some of its rows have no name")
    if not {"values", "error"} <= set(table.column_names):
        return
    compute = pyarrow_module("compute")
    explained = table.filter(compute.is_null(table["error"]))
    for name in NEVER_NULL & set(table.column_names):
        if explained[name].null_count:
            raise ValueError(f"some of its rows have nothing in the column {name}")
    lengths = compute.list_value_length(explained["values"])
    if not (regions is None or set(compute.unique(lengths).to_pylist()) <= {regions}):
        raise ValueError("some of its rows have no value for some region")
    for name in {"standard_errors", "decided"} & set(table.column_names):
        if not compute.list_value_length(explained[name]).equals(lengths):
            raise ValueError(f"some of its rows have not as many {name} as values")
    if not compute.all(compute.is_finite(compute.list_flatten(explained["values"])), min_count=0).as_py():
        raise ValueError("some of its values are no numbers")


def row_of(
    explanation: Explanation,
    position: int,
    *,
    labels: bool,
    inside: tuple[float, float] | None,
    fingerprint: str | None = None,
) -> dict:
    """One explanation as a row.

    Args:
        explanation: of one image
        position: of the image in the list
        labels: whether its regions are its own
        inside: share of the evidence on the object, and the object's share of the image
        fingerprint: of its file; None where nobody may know
    """
    names, mine = explanation.class_names, explanation.class_map
    return {
        **dict.fromkeys(COLUMNS),
        "position": position,
        "image": explanation.name,
        "prediction": names[explanation.prediction],
        "probability": float(explanation.probabilities[explanation.prediction]),
        "probabilities": explanation.probabilities.tolist(),
        "class": names[explanation.target],
        "versus": None if explanation.versus is None else names[explanation.versus],
        "output": explanation.output,
        **_shares(mine),
        "others": [{"output": name, **_shares(one)} for name, one in _other_maps(explanation).items()],
        "prototypes": [
            {
                "prototype": one.prototype,
                **{name: getattr(one, name) for name in PROTOTYPE},
                **_shares(one.test),
            }
            for one in explanation.evidence
        ],
        "labels": mine.players.labels.flatten().tolist() if labels else None,
        "evaluations": explanation.evaluations,
        "precision": explanation.precision,
        "reached": explanation.reached,
        "rounding": explanation.settings["rounding"],
        "nearest_distance": explanation.nearest_distance,
        "usual_distance": explanation.usual_distance,
        "inside": None if inside is None or math.isnan(inside[0]) else inside[0],
        "box_share": None if inside is None else inside[1],
        "seconds": explanation.seconds,
        "version": __version__,
        "file_sha256": fingerprint,
    }


def _other_maps(explanation: Explanation) -> dict[str, RegionValues]:
    """Of other outputs, and of all findings where there are several."""
    maps = {finding_output(number): one.regions for number, one in enumerate(explanation.findings)}
    return {**explanation.other_maps, **{name: one for name, one in maps.items() if one is not None}}


def failed_row(name: str, position: int, reason: str) -> dict:
    """An image that could not be explained."""
    return {
        **dict.fromkeys(COLUMNS),
        "position": position,
        "image": name,
        "error": reason,
        "version": __version__,
    }


def _shares(regions: RegionValues) -> dict[str, Any]:
    return {
        "total": regions.total,
        "gap": regions.gap,
        "values": regions.values.tolist(),
        "standard_errors": regions.standard_errors.tolist(),
        "decided": (~regions.undecided).tolist(),
    }

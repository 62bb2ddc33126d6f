"""Results of prototypes on parts, as they are kept and told."""

from __future__ import annotations

import csv
from pathlib import Path

from protopfaith.evaluation.parts_results import PartScores, PartsEvaluation, PrototypeParts, part_remarks


def result(explainer: str = "ours") -> PartsEvaluation:
    rows = (
        PrototypeParts(0, "=cat", "tail", 0.9, consistent=True, stability=1.0),
        PrototypeParts(1, "dog", "", 0.0, consistent=False, stability=0.25),
    )
    scores = (PartScores(explainer, 0.5, 0.625, 1.0, rows),)
    return PartsEvaluation(scores, 2, 4, ("tail",), {"weights_sha256": "abc"}, {}, ())


def test_every_prototype_is_a_row_that_no_spreadsheet_computes(tmp_path: Path) -> None:
    result().save(tmp_path)
    with (tmp_path / "parts.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["part"] for row in rows] == ["tail", ""]
    assert not rows[0]["class"].startswith("=")


def test_remarks_say_where_a_prototype_is_and_how_surely(tmp_path: Path) -> None:
    result().save(tmp_path)
    remarks = part_remarks(tmp_path, "abc")
    assert "most often on the tail, consistently" in remarks[0]
    assert "mostly on no part (25% unchanged by noise" in remarks[1]
    assert part_remarks(tmp_path, "other weights") == {}


def test_a_changed_file_is_no_remark(tmp_path: Path) -> None:
    for text in ("[]", "{}", "{", '{"settings": {"weights_sha256": "abc"}, "prototypes": {}}'):
        (tmp_path / "parts.json").write_text(text)
        assert part_remarks(tmp_path, "abc") == {}

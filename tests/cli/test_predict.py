from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.cli.conftest import CLASSES, fails_with, protopfaith


def test_predict_does_the_rest_when_one_file_is_broken(place: Path, run: Path) -> None:
    (place / "broken.png").write_bytes(b"not an image")
    some = [
        str(place / "images" / "red" / "0.png"),
        str(place / "broken.png"),
        str(place / "images" / "blue"),
    ]
    done = protopfaith(place, "predict", str(run), *some, "--csv", "out.csv")
    fails_with(done, "broken.png")
    lines = [line.split("\t") for line in done.stdout.splitlines()]  # long paths are not wrapped
    assert [line[0] for line in lines[:2]] == [some[0], f"{some[2]}/0.png"]
    assert all(len(line) == 3 for line in lines)
    rows = list(csv.DictReader((place / "out.csv").open()))
    assert len(rows) == 1 + 1 + 12
    assert rows[1]["error"]
    for row in rows[2:]:
        assert row["class"] in CLASSES
        assert sum(float(row[name]) for name in CLASSES) == pytest.approx(1, abs=1e-5)

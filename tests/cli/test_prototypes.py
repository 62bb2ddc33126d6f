from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import protopfaith


def test_options_reach_the_estimator(place: Path, run: Path, tmp_path: Path) -> None:
    plan = ["--players", "12", "--estimator", "dasp", "--option", "sizes=2", "--option", "batch_size=4"]
    done = protopfaith(place, "prototypes", str(run), *plan, "--nearest", "2", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "prototypes.html") in done.stdout.replace("\n", "")
    listed = json.loads((tmp_path / "prototypes.json").read_text())["prototypes"]
    assert {one["evaluations"] for one in listed} == {2 * 2 * 4}  # two passes, two sizes, four players
    assert {len(one["nearest"]) for one in listed} == {2}


@pytest.mark.parametrize("wrong", ["0", "-1", "x", "1001"])
def test_a_wrong_number_of_patches_is_told_before_anything_is_done(
    place: Path, tmp_path: Path, wrong: str
) -> None:
    done = protopfaith(place, "prototypes", "nowhere", "--nearest", wrong, "--out", str(tmp_path / "none"))
    assert done.returncode == 2
    assert "--nearest" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "none").exists()

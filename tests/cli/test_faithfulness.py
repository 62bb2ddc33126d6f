"""The command, with what costly explainers need."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from tests.cli.conftest import fails_with, protopfaith

QUICK = ["--prototypes", "2", "--players", "8", "--steps", "10", "--budget", "256", "--truth-budget", "0"]


def test_limits_and_precision(place: Path, run: Path, tmp_path: Path) -> None:
    more = ["--explainers", "owen,random", "--limit", "owen=1", "--autocast", "bfloat16", "--checked", "1"]
    done = protopfaith(
        place, "faithfulness", str(run), "--out", str(tmp_path), "--device", "cpu", *QUICK, *more
    )
    assert done.returncode == 0, done.stderr
    assert pd.read_csv(tmp_path / "explainers.csv")["n"].to_list() == [1, 2]
    assert "bfloat16" in (tmp_path / "settings.json").read_text()
    assert "owen (n=1)" in done.stdout


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (["--limit", "dasp"], "such as dasp=20"),
        (["--limit", "dasp=few"], "such as dasp=20"),
        (["--limit", "dapp=2"], "dasp"),
        (["--autocast", "int8"], "use auto, off, bfloat16, float16"),
        (["--steps", "2"], "give at least 5"),
        (["--budget", "10"], "budget of 10 evaluations is too small"),
    ],
)
def test_misspelt_options_are_one_sentence(
    place: Path, run: Path, tmp_path: Path, wrong: list[str], told: str
) -> None:
    done = protopfaith(place, "faithfulness", str(run), "--out", str(tmp_path / "none"), *QUICK, *wrong)
    done.stderr = " ".join(done.stderr.split())
    fails_with(done, told)
    assert not (tmp_path / "none").exists()

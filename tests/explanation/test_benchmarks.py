"""Benchmarks run on a tiny network: what they print is about that network, not whether it is fast."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

from protopfaith.training import Run

FOLDER = Path(__file__).parents[2] / "benchmarks"


def printed(script: str, *arguments: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, FOLDER / script, *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_explaining_tells_what_a_user_waits_for(run: Run) -> None:
    text = printed("explaining.py", run.folder, "--images", "2", "--budget", "100", "--autocast", "bfloat16")
    assert "maps on the sources of" in text
    assert "image 1: " in text
    rows = {
        parts[1].strip(): parts[2:] for parts in (line.split("│") for line in text.splitlines()) if parts[1:]
    }
    assert rows["evaluations"][0].strip() == "100"
    assert float(rows["explanation"][0]) >= 0.5 * float(rows["as many plain forward passes"][0])
    assert rows["totals changed by rounding, worst map"][0].strip() != "0.0%"


def test_agreement_prints_and_writes_as_it_goes(run: Run, tmp_path: Path) -> None:
    """Nine players: the reference is exact. Captum and shapiq are left to larger runs."""
    plan = [
        "--images",
        "2",
        "--prototypes",
        "2",
        "--budgets",
        "200,256",
        "--reference",
        "512",
        "--sizes",
        "3",
    ]
    small = ["--nodes", "8", "--dasp-images", "1", "--no-rivals", "--csv", tmp_path / "table.csv"]
    text = printed("agreement.py", run.folder, *plan, *small)
    assert "2 images, 2 outputs each (class), 9 players" in text
    assert "54 moment passes" in text  # 2 x 3 sizes x 9 players
    for number in (0, 1):
        for name in ("reference", "adaptive_owen", "owen", "kernel", "permutation", "moment_path"):
            assert f"image {number} {name}: " in text
    assert "image 0 dasp: " in text
    assert "image 1 dasp: " not in text
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    # By image: two sampling estimators at two budgets, two at one, moment_path; dasp on one image alone.
    assert len(rows) == 2 * 2 * 7 + 2
    assert {row["reliability"] for row in rows} == {"1.0"}
    sampled = [row for row in rows if row["estimator"] == "owen" and row["evaluations"] == "256"]
    assert min(float(row["correlation"]) for row in sampled) > 0.5
    again = printed("agreement.py", "--read", tmp_path / "table.csv")
    assert again.split("reliability")[1] == text.split("reliability")[-1]

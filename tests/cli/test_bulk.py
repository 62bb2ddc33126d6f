from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import fails_with, protopfaith

pytest.importorskip("pyarrow")
QUICK = ["--players", "12", "--budget", "64", "--device", "cpu"]


def test_many_images_then_a_report_and_a_summary(place: Path, run: Path, tmp_path: Path) -> None:
    images = [str(place / "images" / name) for name in ("red", "blue")]
    out = str(tmp_path / "out")
    for shard in ("1/2", "2/2"):
        done = protopfaith(place, "explain", str(run), *images, *QUICK, "--bulk", out, "--shard", shard)
        assert done.returncode == 0, done.stderr
    assert "24 images" in done.stdout
    page = tmp_path / "report.html"
    done = protopfaith(place, "report", out, "red/3.png", "--out", str(page))
    assert done.returncode == 0, done.stderr
    assert "red/3.png" in page.read_text()
    summary = tmp_path / "summary.html"
    done = protopfaith(place, "summarize", out, "--against", out, "--out", str(summary))
    assert done.returncode == 0, done.stderr
    assert "24 explained images" in summary.read_text()
    assert "image/jpeg" in summary.read_text()
    done = protopfaith(place, "summarize", out, "--no-pictures", "--out", str(summary))
    assert done.returncode == 0, done.stderr
    assert "image/jpeg" not in summary.read_text()


def test_bad_images_are_told(place: Path, run: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"no image")
    done = protopfaith(
        place, "explain", str(run), str(tmp_path / "broken.png"), *QUICK, "--bulk", str(tmp_path / "out")
    )
    fails_with(done, "Failed: broken.png: ")
    assert str(tmp_path) not in done.stderr.split("Failed")[1]

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from tests.cli.conftest import fails_with, protopfaith


def test_explain_does_the_rest_when_one_file_is_broken(place: Path, run: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(b"no image")
    files = [str(place / "images" / "red" / "0.png"), str(tmp_path / "broken.png")]
    out = tmp_path / "out"
    done = protopfaith(
        place, "explain", str(run), *files, "--players", "8", "--budget", "80", "--out", str(out)
    )
    fails_with(done, "broken.png: ")
    assert done.stderr.count("Failed:") == 1
    assert len(list(out.glob("0-*/report.html"))) == 1
    assert "broken.png" in (out / "index.html").read_text()


def test_options_reach_the_estimator_and_sources_can_be_left_out(
    place: Path, run: Path, tmp_path: Path
) -> None:
    image = str(place / "images" / "red" / "0.png")
    plan = ["--players", "12", "--estimator", "dasp", "--option", "sizes=2", "--option", "batch_size=4"]
    done = protopfaith(place, "explain", str(run), image, "--no-sources", *plan, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (case,) = tmp_path.glob("0-*/explanation.json")
    found = json.loads(case.read_text())
    assert found["evaluations"] == 2 * 2 * 4  # passes: two for each of two sizes and four players
    assert all(one["source_side"] is None for one in found["evidence"])


def test_the_way_out_that_errors_advise_exists(place: Path, run: Path, tmp_path: Path) -> None:
    """The images are gone, so there are no sources; what the error says helps."""
    image = str(place / "images" / "red" / "0.png")
    plan = ["--root", str(place / "empty"), "--players", "12", "--budget", "80", "--out", str(tmp_path)]
    assert protopfaith(place, "explain", str(run), image, *plan).returncode == 1
    done = protopfaith(place, "explain", str(run), image, *plan, "--no-sources")
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("0-*/report.html"))) == 1


def test_a_precision_that_the_budget_cannot_reach_is_told(
    place: Path, run: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the program logs to: the terminal."""
    image = str(place / "images" / "red" / "0.png")
    plan = ["--players", "4", "--budget", "100", "--precision", "0.01", "--no-sources"]
    done = protopfaith(place, "explain", str(run), image, *plan, "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "the precision ±1% was not reached" in caplog.text
    assert "with 100 evaluations; allow more (--budget)" in caplog.text


def test_a_page_of_a_file_is_explained(place: Path, run: Path, tmp_path: Path) -> None:
    pages = [Image.open(place / "images" / name / "1.png") for name in ("blue", "red")]
    pages[0].save(tmp_path / "pages.tif", save_all=True, append_images=pages[1:])
    options = ["--players", "12", "--budget", "64", "--no-sources", "--no-coarse", "--frame", "all"]
    done = protopfaith(
        tmp_path, "explain", str(run), str(tmp_path / "pages.tif"), *options, "--out", str(tmp_path / "out")
    )
    assert done.returncode == 0, done.stderr
    results = sorted((tmp_path / "out").glob("*/explanation.json"))
    assert [path.parent.name[:13] for path in results] == ["pages-frame1-", "pages-frame2-"]
    names = {json.loads(path.read_text())["name"] for path in results}
    assert names == {"pages.tif#1", "pages.tif#2"}


def test_nothing_written_says_where_files_lie(place: Path, run: Path, tmp_path: Path) -> None:
    image, out = place / "images" / "red" / "0.png", tmp_path / "out"
    plan = ["--players", "8", "--budget", "80"]  # so few that the map is rough, with a command
    done = protopfaith(place, "explain", str(run), str(image), *plan, "--out", str(out))
    assert done.returncode == 0, done.stderr
    written = [path for path in out.rglob("*") if path.is_file()]
    assert any(b"protopfaith explain RUN 0.png" in path.read_bytes() for path in written)
    assert [path.name for path in written if str(place).encode() in path.read_bytes()] == []


def test_a_folder_is_no_mask(place: Path, run: Path) -> None:
    image = str(place / "images" / "red" / "0.png")
    done = protopfaith(place, "explain", str(run), image, "--mask", str(place / "images"))
    fails_with(done, "is a folder, where an image is expected")


def test_a_file_in_the_place_of_the_results_is_told_before_the_work(place: Path, run: Path) -> None:
    (run / "explained").write_text("mine")
    done = protopfaith(place, "explain", str(run), str(place / "images" / "red" / "0.png"))
    (run / "explained").unlink()
    fails_with(done, "explained is a file and not a folder for results")
    assert "Loading" not in done.stderr

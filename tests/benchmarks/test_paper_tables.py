"""The command that makes the paper's tables, on a tiny run."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pandas as pd
import pytest

from protopfaith.explanation.settings import usual_budget

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
QUICK = [
    *("--prototypes", "3", "--dasp-prototypes", "2", "--truth-prototypes", "2", "--checked", "1"),
    *("--explainers", "ours,protopnet,dasp,random", "--budget", "128", "--truth-budget", "256"),
    *("--sizes", "2", "--steps", "10", "--players", "8"),
]


@pytest.fixture(scope="module")
def paper_tables():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import paper_tables as module

        yield module
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def out(small_run, paper_tables, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    paper_tables.main([str(small_run.folder), "--out", str(folder), *QUICK, "--figures", "1"])
    return folder


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_tables_say_how_many_prototypes_each_line_has(out) -> None:
    text = (out / "tables.md").read_text(encoding="utf-8")
    first, shared = text.split("prototypes that they share:")
    assert {row[0]: row[1] for row in rows(first)[1:]} == {
        "**ours**": "3",
        "ProtoPNet's map": "3",
        "DASP (paper)": "2",
        "random": "3",
    }
    assert [row[1] for row in rows(shared)[1:5]] == ["2"] * 4


def test_numbers_are_those_of_the_csv(out) -> None:
    frame = pd.read_csv(out / "explainers.csv", index_col="explainer")
    lines = {row[0]: row for row in rows((out / "tables.md").read_text(encoding="utf-8"))[1:5]}
    for title, name in (("**ours**", "ours"), ("DASP (paper)", "dasp")):
        assert lines[title][2].startswith(f"{frame.loc[name, 'aopc_20']:.3f} ± ")
        assert lines[title][7] == f"{frame.loc[name, 'pearson']:.3f}"


def test_single_features_are_shares_of_the_image(out) -> None:
    """Ten steps of 32 x 32 pixels, or of 16 windows."""
    text = (out / "tables.md").read_text(encoding="utf-8")
    assert "one pixel a step (0.98% of the image in the end)" in text
    assert text.count("one window a step (62%)") == 2  # in our order, in a random one
    assert text.count("one window a step (10%)") == 2  # of a single step the curves know no less than a tenth
    assert "Random orders of windows" in text


def test_costs_are_counted(out) -> None:
    costs = pd.read_csv(out / "costs.csv", index_col="step")
    assert costs.loc["truth: explanations", "plain"] >= 2 * 256 * 0.9
    assert costs.loc["dasp: explanations", "moments"] >= 2 * (2 * 2 * 16)  # two passes a player and size
    assert costs.loc["ours: curves", "plain"] == 3 * 11 * 4
    assert costs.loc["protopnet: curves", "plain"] == 3 * 11 * 5  # also its own units, pixels
    assert costs.loc["all", "seconds"] == pytest.approx(costs["seconds"].iloc[:-1].sum(), abs=0.1)


def test_figures_are_small_enough(out) -> None:
    (figure,) = (out / "figures").glob("*.png")
    assert 10_000 < figure.stat().st_size < 1_500_000


def test_fine_dasp_stops_says_how_far_it_got_and_goes_on(small_run, out, paper_tables, capsys) -> None:
    fine = [str(small_run.folder), "--out", str(out), "--no-tables", "--fine", "--fine-players", "4"]
    fine += ["--fine-sizes", "3", "--moment-batch", "4", "--steps", "10", "--players", "8"]
    paper_tables.main([*fine, "--limit-seconds", "1e-9"])
    text = capsys.readouterr().out
    done = int(re.search(r"(\d+) of 64 players were done", text).group(1))
    assert done < 64
    assert "AOPC" not in text  # nothing is made up from what is there
    before = json.loads((out / "fine_dasp.json").read_text())
    paper_tables.main(fine)
    text = capsys.readouterr().out
    after = json.loads((out / "fine_dasp.json").read_text())
    assert after["passes"] == 2 * 3 * 64 > before["passes"] > 0
    assert after["seconds"] > before["seconds"]
    names = [row[0] for row in rows(text)]
    assert names[1] == "DASP, fine"
    assert "protopnet" in names  # beside the others on the same prototype


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_samples_are_as_many_as_an_explanation_takes(device: str, paper_tables) -> None:
    given = ["run", "--out", "tables", "--device", device, "--autocast", "off"]
    assert paper_tables.parse_options(given).budget == usual_budget(device)
    assert paper_tables.parse_options([*given, "--budget", "100"]).budget == 100


def test_the_papers_numbers_are_found_by_data_and_encoder(paper_tables) -> None:
    from paper_numbers import paper_model as find

    assert find("cub", "resnet50_v1").aopc_protopfaith == -2.848353
    assert find("rsna", "resnet").name == "RSNA ResNet"
    assert find("birds", "small") is None
    assert (find("cub", "resnet50").prototypes, find("rsna", "convnet").prototypes) == (100, 14)

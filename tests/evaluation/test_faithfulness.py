"""The whole of it on a real, tiny run."""

from __future__ import annotations

import io
import re

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from rich.console import Console

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation import DEFAULT_EXPLAINERS, faithfulness
from protopfaith.evaluation.aopc import aopc, paper_aopc

SMALL = {
    "prototypes": 2,
    "steps": 10,
    "window": 8,
    "budget": 256,
    "truth_budget": 512,
    "sizes": 2,
    "checked": 1,
    "progress": False,
}


@pytest.fixture(scope="module")
def found(run, tmp_path_factory):
    return faithfulness(run, tmp_path_factory.mktemp("faithfulness"), **SMALL)


def test_every_explainer_is_judged_by_every_metric(found) -> None:
    assert [result.name for result in found.results] == list(DEFAULT_EXPLAINERS)
    assert found.skipped == {}
    frame = found.frame()
    always = ["aopc_20", "aopc_100", "aopc_paper", "insertion", "aopc_20_blur", "aopc_20_mean", "pearson"]
    assert np.isfinite(
        frame[[*always, "spearman", "completeness_gap", "seconds", "stability"]].to_numpy()
    ).all()
    assert np.isfinite(frame.loc[["ours", "dasp"], "relative_error"]).all()
    assert frame.loc[["saliency", "protopnet"], "relative_error"].isna().all()  # they have no scale


def test_curves_begin_at_the_image_and_end_at_the_baseline_for_all(found) -> None:
    first = found.results[0].curves
    for result in found.results:
        for kind in ("zero", "own"):
            assert torch.allclose(result.curves[kind][:, [0, -1]], first["zero"][:, [0, -1]], atol=1e-4)
        assert torch.allclose(result.curves["insertion"][:, [-1, 0]], first["zero"][:, [0, -1]], atol=1e-4)


def test_the_table_says_what_the_curves_say(found) -> None:
    result = found.results[0]
    row = found.row(result)
    assert row["aopc_100"] == pytest.approx(float(aopc(result.curves["zero"]).mean()))
    n, steps = result.curves["zero"].shape
    assert row["aopc_paper"] == pytest.approx(paper_aopc(result.curves["zero"], 8, 1))
    assert row["aopc_paper"] == pytest.approx(row["aopc_100"] * n * (steps - 1) / (8 + 1 + steps - 1 - 1))


def test_files_can_be_read(found) -> None:
    explainers = pd.read_csv(found.folder / "explainers.csv", index_col="explainer")
    assert list(explainers.index) == list(DEFAULT_EXPLAINERS)
    prototypes = pd.read_csv(found.folder / "prototypes.csv")
    assert len(prototypes) == len(DEFAULT_EXPLAINERS) * 2
    means = prototypes.groupby("explainer")["aopc_20"].mean()
    assert np.allclose(means[explainers.index], explainers["aopc_20"])
    for name in ("curves", "scores", "examples"):
        with Image.open(found.folder / f"{name}.png") as picture:
            assert min(picture.size) > 200


def test_the_page_needs_nothing_else_and_names_everything(found) -> None:
    page = found.page.read_text(encoding="utf-8")
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert all(name in page for name in DEFAULT_EXPLAINERS)
    assert "T = 10 steps" in page
    assert page.count("data:image/png;base64,") == 3


def test_the_terminal_shows_steps_and_reliability(found) -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(found.table())
    text = console.export_text()
    assert "T = 10" in text
    assert "reliability" in text
    assert "pass" in text
    assert "fail" in text


def test_the_same_call_goes_on_where_it_was(run, found) -> None:
    dates = {path: path.stat().st_mtime_ns for path in (found.folder / "results").rglob("*.npz")}
    again = faithfulness(run, found.folder, **SMALL)
    assert {path: path.stat().st_mtime_ns for path in (found.folder / "results").rglob("*.npz")} == dates
    pd.testing.assert_frame_equal(again.frame(), found.frame())


def test_more_prototypes_keep_what_is_there(run, found) -> None:
    dates = {path: path.stat().st_mtime_ns for path in (found.folder / "results/ours").glob("prototype-*")}
    more = faithfulness(run, found.folder, **{**SMALL, "prototypes": 3}, explainers=["ours", "random"])
    assert set(found.prototypes) < set(more.prototypes)
    assert all(path.stat().st_mtime_ns == date for path, date in dates.items())


def test_the_seed_decides(run, found, tmp_path) -> None:
    chosen, quick = ["ours", "random"], {**SMALL, "truth_budget": 0}
    same, other = (
        faithfulness(run, tmp_path / str(seed), **quick, explainers=chosen, seed=seed) for seed in (0, 1)
    )
    columns = ["aopc_100", "randomization"]
    pd.testing.assert_frame_equal(same.frame()[columns], found.frame().loc[chosen, columns], rtol=1e-4)
    assert not np.allclose(other.frame()[columns], same.frame()[columns])


def test_without_a_truth_there_is_no_agreement(run, tmp_path) -> None:
    found = faithfulness(run, tmp_path, **{**SMALL, "truth_budget": 0}, explainers=["random"])
    assert "pearson" not in found.frame()
    assert not any("reliability" in remark for remark in found.remarks())


def test_an_explainer_that_cannot_run_is_left_out_and_said(run, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("protopfaith.evaluation.explainers.gradients.find_spec", lambda name: None)
    found = faithfulness(run, tmp_path, **{**SMALL, "truth_budget": 0}, explainers=["random", "saliency"])
    assert [result.name for result in found.results] == ["random"]
    assert "compare" in found.skipped["saliency"]
    assert any("saliency was left out" in remark for remark in found.remarks())


def test_unknown_explainers_are_told_before_any_work(run, tmp_path) -> None:
    with pytest.raises(ProtoPFaithError, match="no explainer named 'grad_cam'"):
        faithfulness(run, tmp_path / "none", explainers=["grad_cam"])
    assert not (tmp_path / "none").exists()

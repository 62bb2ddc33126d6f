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
from protopfaith.evaluation import default_explainers, faithfulness
from protopfaith.evaluation.metrics.removal import aopc, paper_aopc

SMALL = {
    "prototypes": 2,
    "steps": 10,
    "players": 8,
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
    assert [result.name for result in found.results] == default_explainers()
    assert found.skipped == {}
    assert found.n_players == 16
    assert found.players.startswith("16 players")
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
    assert list(explainers.index) == default_explainers()
    prototypes = pd.read_csv(found.folder / "prototypes.csv")
    assert len(prototypes) == len(default_explainers()) * 2
    means = prototypes.groupby("explainer")["aopc_20"].mean()
    assert np.allclose(means[explainers.index], explainers["aopc_20"])
    for name in ("curves", "scores", "examples"):
        with Image.open(found.folder / f"{name}.png") as picture:
            assert min(picture.size) > 200


def test_the_page_needs_nothing_else_and_names_everything(found) -> None:
    page = found.page.read_text(encoding="utf-8")
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert all(name in page for name in default_explainers())
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


WRONG = [
    ({"explainers": ["grad_cam"]}, "no explainer named 'grad_cam'"),
    ({"explainers": []}, "No explainer was named"),
    ({"limits": {"dapp": 2}}, "no explainer named 'dapp'"),
    ({"limits": {"dasp": 0}}, "limit of dasp is 0 prototypes; give at least one"),
    ({"prototypes": 0}, "number of prototypes is 0; give at least 1"),
    ({"prototypes": []}, "number of prototypes is 0; give at least 1"),
    ({"steps": 4}, "number of steps is 4; give at least 5, since AOPC is also taken over the first 20%"),
    ({"steps": 0}, "number of steps is 0"),
    ({"sizes": 0}, "'sizes' of Options must be at least 1"),
    ({"checked": 0}, "number of checked images is 0"),
    ({"moment_batch": 0}, "'moment_batch' of Options must be at least 1"),
    ({"memory": 0}, "'memory' of Options must be at least 1"),
    ({"players": 0}, "Windows of 0x0 pixels"),
    ({"players": 32}, "cover the whole image"),
    ({"players": "superpixels:9"}, "must be a whole number or None"),
    ({"budget": 0}, "'budget' of Options must be at least 1"),
    ({"budget": 20}, "budget of 20 evaluations is too small for 'adaptive_owen' with 16 players"),
    ({"budget": 20, "explainers": ["random", "owen"]}, "budget of 20 evaluations is too small for 'owen'"),
    ({"truth_budget": -1}, "truth_budget is -1"),
    (
        {"truth_budget": 40},
        "truth_budget=40 cannot be: A budget of 40 is too small for the true values",
    ),
    ({"autocast": "int8"}, "autocast type 'int8'"),
]


@pytest.mark.parametrize(("wrong", "told"), WRONG, ids=[str(wrong) for wrong, _ in WRONG])
def test_what_is_wrong_is_told_before_any_work(run, tmp_path, monkeypatch, wrong, told) -> None:
    monkeypatch.delattr(type(run), "model")  # not even the network is needed to know
    with pytest.raises(ProtoPFaithError, match=told) as problem:
        faithfulness(run, tmp_path / "none", **{**SMALL, **wrong})
    assert "\n" not in str(problem.value)
    assert not (tmp_path / "none").exists()


def test_a_missing_quantus_is_told_before_any_work(run, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("protopfaith.evaluation.metrics.quantus_metrics.find_spec", lambda name: None)
    with pytest.raises(ProtoPFaithError, match="Quantus is not installed"):
        faithfulness(run, tmp_path / "none", **SMALL, quantus=True)
    assert not (tmp_path / "none").exists()


def test_the_fewest_steps_suffice(run, tmp_path) -> None:
    fewest = {**SMALL, "truth_budget": 0, "explainers": ["random"], "steps": 5}
    assert faithfulness(run, tmp_path, **fewest).frame()["aopc_20"].notna().all()


def test_a_budget_too_small_does_not_matter_where_nobody_spends_it(run, tmp_path) -> None:
    quick = {**SMALL, "truth_budget": 0, "explainers": ["random"], "budget": 2}
    assert faithfulness(run, tmp_path, **quick).skipped == {}


LIMITED = {**SMALL, "prototypes": 3, "explainers": ["ours", "dasp", "random"]}


@pytest.fixture(scope="module")
def limited(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("limited")
    return faithfulness(run, folder, **LIMITED, limits={"dasp": 2, "truth": 1})


def test_costly_explainers_can_be_judged_on_fewer_prototypes(limited) -> None:
    ours, dasp, random = limited.results
    assert len(ours.prototypes) == len(random.prototypes) == 3
    assert len(dasp.prototypes) == len(dasp.curves["zero"]) == 2
    assert limited.frame()["n"].to_list() == [3, 2, 3]
    counts = limited.prototypes_frame()["explainer"].value_counts()
    assert (counts["ours"], counts["dasp"]) == (3, 2)


def test_a_sum_over_fewer_prototypes_is_not_set_beside_others(limited) -> None:
    assert limited.frame()["aopc_paper"].isna().to_list() == [False, True, False]
    assert limited.common.frame()["aopc_paper"].notna().all()
    assert any("dasp (2)" in remark for remark in limited.remarks())


def test_limits_take_the_prototypes_drawn_first_and_change_no_number(run, limited, tmp_path) -> None:
    whole = faithfulness(run, tmp_path, **{**LIMITED, "prototypes": 2})
    assert set(limited.common.prototypes) == set(whole.prototypes)
    columns = ["n", "aopc_20", "aopc_100", "aopc_paper", "insertion", "completeness_gap", "inside"]
    pd.testing.assert_frame_equal(limited.common.frame()[columns], whole.frame()[columns], rtol=1e-3)


def test_agreement_only_where_the_truth_is_known(limited) -> None:
    assert len(limited.truth_prototypes) == limited.truth.halves.shape[1] == 1
    for result in limited.results:
        rows = (~result.agreement["pearson"].isnan()).nonzero().flatten().tolist()
        assert tuple(result.prototypes[row] for row in rows) == limited.truth_prototypes
    assert np.isfinite(limited.frame()["pearson"]).all()
    assert "values of 1 prototypes" in " ".join(limited.remarks())


def test_the_comparison_in_common_is_written_too(limited) -> None:
    common = pd.read_csv(limited.folder / "explainers_common.csv", index_col="explainer")
    assert common["n"].to_list() == [2, 2, 2]
    assert (limited.folder / "curves_common.png").is_file()
    page = limited.page.read_text(encoding="utf-8")
    assert "the 2 prototypes that all explainers have in common" in page
    assert "dasp (n=2)" in page


def test_without_limits_nothing_is_compared_twice(found) -> None:
    assert found.common is None
    assert not (found.folder / "explainers_common.csv").exists()


def test_some_prototypes_of_a_result(limited) -> None:
    chosen = limited.common.prototypes[:1]
    one = limited.only(chosen)
    for result, before in zip(one.results, limited.results, strict=True):
        row = before.prototypes.index(chosen[0])
        assert result.prototypes == chosen
        assert torch.equal(result.curves["zero"][0], before.curves["zero"][row])
        assert torch.equal(result.seconds[0], before.seconds[row])


@pytest.mark.parametrize("result", ["found", "limited"])
def test_every_table_fits_into_80_columns(result, request) -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(request.getfixturevalue(result).table())
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    axioms = text[text.index("Axioms:") :]
    assert re.search(r"(pass|fail) ±?[\d.]+", axioms)
    assert "sensitivity" in axioms


def test_who_has_fewer_prototypes_is_never_the_best(limited) -> None:
    from protopfaith.show.faithfulness.tables import METRICS, metric_cells

    cells = metric_cells(limited, METRICS)[1]
    assert not any(best for _, best in cells["dasp (n=2)"])


def test_progress_can_be_told_to_a_function(run, tmp_path) -> None:
    told: list[str] = []
    quick = {**SMALL, "truth_budget": 0, "progress": told.append}
    faithfulness(run, tmp_path, **quick, explainers=["random"])
    assert "random: curves" in told
    assert told[-1] == "tables and figures"


def test_axioms_stay_in_full_precision(run, tmp_path) -> None:
    """Networks that are the same function differ by rounding, which bfloat16 makes as large as violations."""
    quick = {**SMALL, "truth_budget": 0, "explainers": ["ours"]}
    reduced, full = (
        faithfulness(run, tmp_path / str(dtype), **quick, autocast=dtype) for dtype in (torch.bfloat16, None)
    )
    axioms = [c for c in full.frame() if c.startswith("axiom")]
    pd.testing.assert_frame_equal(reduced.frame()[axioms], full.frame()[axioms], atol=1e-3)
    assert not np.array_equal(reduced.results[0].curves["zero"], full.results[0].curves["zero"])

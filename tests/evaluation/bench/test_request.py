from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.bench.request import check_request, make_request
from protopfaith.evaluation.bench.settings import make_settings
from protopfaith.evaluation.explainers import default_explainers
from protopfaith.training import Run


def test_what_is_usual_is_fine() -> None:
    check_request(default_explainers(), 8, make_settings((48, 48), "cpu"))


@pytest.mark.parametrize(
    ("names", "prototypes", "settings", "message"),
    [
        ([], 8, {}, "No explainer was named"),
        (["our"], 8, {}, "did you mean 'ours'"),
        (["ours"], 0, {}, "number of prototypes is 0"),
        (["ours"], 8, {"steps": 3}, "number of steps is 3"),
        (["ours"], 8, {"checked": 0}, "number of checked images is 0"),
        (["ours"], 8, {"limits": {"dasp": 0}}, "limit of dasp is 0"),
        (["ours"], 8, {"limits": {"nothing": 1}}, "no explainer named 'nothing'"),
        (["ours"], 8, {"budget": 4}, "budget"),
        (["ours"], 8, {"truth_budget": 4}, "truth_budget=4"),
    ],
)
def test_what_cannot_come_to_a_good_end_is_said_before_any_work(names, prototypes, settings, message) -> None:
    with pytest.raises(ProtoPFaithError, match=message):
        check_request(names, prototypes, make_settings((48, 48), "cpu", **settings))


@pytest.mark.parametrize(
    ("given", "understood"),
    [
        (np.int64(3), 3),
        (torch.tensor(3), 3),
        (np.array([0, 1]), [0, 1]),
        (torch.tensor([1]), [1]),
        ((np.int64(1),), [1]),
    ],
)
def test_prototypes_are_numbers_of_any_library(run: Run, given, understood) -> None:
    assert make_request(run, None, prototypes=given).prototypes == understood


def test_the_same_prototype_twice_and_a_file_for_the_results_are_refused(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ProtoPFaithError, match="once"):
        make_request(run, None, prototypes=[0, 0])
    (tmp_path / "photo.png").write_bytes(b"photo")
    with pytest.raises(ProtoPFaithError, match=r"photo\.png is a file"):
        make_request(run, tmp_path / "photo.png")


def test_what_is_left_open_is_as_usual(run: Run) -> None:
    asked = make_request(run.folder, None)
    assert asked.names == tuple(default_explainers())
    assert asked.folder == run.folder / "faithfulness"
    assert asked.settings.truth_budget > 0


def test_the_bench_has_the_prototypes_asked_for(run: Run, tmp_path: Path) -> None:
    bench, sample = make_request(run, tmp_path, prototypes=[2, 0], explainers=["random"]).open(print)
    assert sorted(bench.prototypes) == [0, 2]
    assert sum(map(len, sample)) == len(run.data().train)
    assert len(bench.settings.mean_color) == 3


@pytest.mark.parametrize("asked", [{"explainers": "ours"}, {"prototypes": 0}, {"seed": -1}, {"steps": 2}])
def test_nonsense_is_refused_before_any_work(run: Run, asked: dict[str, object]) -> None:
    with pytest.raises(ProtoPFaithError):
        make_request(run, None, **asked)  # type: ignore[arg-type]


def test_an_explainer_is_named_once(run: Run) -> None:
    with pytest.raises(ProtoPFaithError, match="'owen' is named twice"):
        make_request(run, None, explainers=["owen", "random", "owen"])

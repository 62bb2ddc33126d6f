from __future__ import annotations

import pytest
import torch

from protopfaith.evaluation.bench.runner import Bench
from protopfaith.evaluation.bench.settings import BenchSettings
from protopfaith.evaluation.bench.subjects import find_subjects
from protopfaith.store import Store
from tests.evaluation.conftest import PREPROCESSING


@pytest.fixture
def bench(model, images, options, tmp_path) -> Bench:
    settings = BenchSettings(
        options, steps=10, truth_budget=512, checked=1, limits={"owen": 1}, mean_color=(0.0, 0.0, 0.0)
    )
    subjects = find_subjects(model, images, [2, 0], PREPROCESSING)
    return Bench(
        model, subjects, [2, 0], settings=settings, store=Store(tmp_path, {}), step=lambda what: None
    )


def test_a_result_has_a_row_for_each_prototype(bench) -> None:
    result = bench.result("ours", bench.truth())
    assert result.prototypes == (2, 0)
    assert all(values.shape == (2,) for values in result.per_prototype().values())
    assert float(result.agreement["pearson"].min()) > 0.8


def test_limits_leave_the_first_that_were_drawn(bench) -> None:
    assert bench.result("owen", None).prototypes == (2,)


def test_what_was_computed_is_read_again(bench, monkeypatch) -> None:
    first = bench.result("random", None)
    monkeypatch.setattr(bench, "_explain", lambda *_: pytest.fail("computed twice"))
    again = bench.result("random", None)
    assert torch.equal(first.curves["zero"], again.curves["zero"])
    assert set(bench.maps("random")) == {0, 2}

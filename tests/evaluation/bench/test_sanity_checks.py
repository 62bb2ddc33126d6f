from __future__ import annotations

import pytest

from protopfaith.evaluation.bench.sanity_checks import SanityChecks
from protopfaith.evaluation.bench.settings import BenchSettings
from protopfaith.evaluation.bench.subjects import find_subjects
from protopfaith.evaluation.metrics.axioms import AXIOMS
from protopfaith.store import Store
from tests.evaluation.conftest import PREPROCESSING


@pytest.mark.parametrize("name", ["ours", "random"])
def test_every_axiom_is_measured_once_and_kept(model, images, options, tmp_path, name) -> None:
    settings = BenchSettings(options, steps=10, truth_budget=0, checked=1)
    subjects = find_subjects(model, images, [0], PREPROCESSING)
    checks = SanityChecks(model, settings, Store(tmp_path, {}))
    told: list[str] = []
    first, again = (checks.of(name, subjects, told.append) for _ in range(2))
    assert [check.axiom for check in first.axioms[0]] == list(AXIOMS)
    assert first.axioms == again.axioms
    assert first.stability.shape == first.randomization.shape == (1,)
    assert len(told) == 2
    passed = {check.axiom: check.passed for check in first.axioms[0]}
    assert passed["completeness"] is (name == "ours")

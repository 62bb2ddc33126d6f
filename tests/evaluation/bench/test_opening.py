from __future__ import annotations

from pathlib import Path

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation import default_explainers
from protopfaith.evaluation.bench.opening import understand
from protopfaith.training import Run


def test_what_is_left_open_is_as_usual(run: Run) -> None:
    asked = understand(run.folder, None)
    assert asked.names == tuple(default_explainers())
    assert asked.folder == run.folder / "faithfulness"
    assert asked.settings.truth_budget > 0


def test_the_bench_has_the_prototypes_asked_for(run: Run, tmp_path: Path) -> None:
    bench, sample = understand(run, tmp_path, prototypes=[2, 0], explainers=["random", "random"]).open(print)
    assert sorted(bench.prototypes) == [0, 2]
    assert sum(map(len, sample)) == len(run.data().train)
    assert len(bench.settings.mean_color) == 3


@pytest.mark.parametrize("asked", [{"explainers": "ours"}, {"prototypes": 0}, {"seed": -1}, {"steps": 2}])
def test_nonsense_is_refused_before_any_work(run: Run, asked: dict[str, object]) -> None:
    with pytest.raises(ProtoPFaithError):
        understand(run, None, **asked)  # type: ignore[arg-type]

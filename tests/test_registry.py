"""Extensions are found by themselves: a new file in the right folder is all."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import protopfaith
from protopfaith.data import DATASETS
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ENCODERS
from protopfaith.registry import Registry, borrowed, did_you_mean, import_modules
from protopfaith.shapley import ESTIMATORS

NEW_FILES = {  # each a file and where its registry is
    "network/encoders/new.py": "network.encoders.lookup import ENCODERS",
    "data/new.py": "data.registry import DATASETS",
    "evaluation/explainers/new.py": "evaluation.explainers.common import EXPLAINERS",
    "shapley/estimators/new.py": "shapley.estimation import ESTIMATORS",
}
LIST = """
import json
from protopfaith.data import DATASETS
from protopfaith.evaluation import EXPLAINERS, default_explainers
from protopfaith.moments import RULES
from protopfaith.network import ENCODERS
from protopfaith.shapley import ESTIMATORS

import torch

registries = (ENCODERS, DATASETS, EXPLAINERS, ESTIMATORS, default_explainers())
print(json.dumps(["newcomer" in known for known in registries] + [torch.deg2rad in RULES]))
"""


def test_a_new_file_in_the_package_is_all_that_an_extension_takes(tmp_path: Path) -> None:
    copy = tmp_path / "protopfaith"
    shutil.copytree(Path(protopfaith.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for path, registry in NEW_FILES.items():
        (copy / path).write_text(
            f"from protopfaith.{registry} as known\n\n"
            "@known.register('newcomer')\ndef newcomer(*_, **__): ...\n"
        )
    (copy / "moments/rules/new.py").write_text(
        "from protopfaith.moments.dispatch import rule\n\n@rule('deg2rad')\ndef deg2rad(function, x): ...\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", LIST],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == [True] * 6


def test_all_modules_of_a_package_are_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "zoo" / "birds").mkdir(parents=True)
    names = ("__init__", "cats", "dogs", "birds/__init__")
    for name in names:
        (tmp_path / "zoo" / f"{name}.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    import_modules("zoo", [str(tmp_path / "zoo")])
    for name in ("zoo", "zoo.cats", "zoo.dogs", "zoo.birds"):
        assert sys.modules.pop(name)


def test_names_are_unique_and_unknown_ones_are_said() -> None:
    shapes: Registry[type] = Registry("shape")
    shapes.register("circle")(int)
    with pytest.raises(ValueError, match="already a shape named 'circle'"):
        shapes.register("circle")(float)
    with pytest.raises(ProtoPFaithError, match=r"no shape named 'circl'; did you mean 'circle'\?"):
        shapes["circl"]


def test_of_very_many_names_some_are_said() -> None:
    told = did_you_mean("class 77x", [f"class {number}" for number in range(1000)])
    assert told.startswith("did you mean 'class 77'? Known: class 0, class 1, ")
    assert told.endswith(", ... (1000 in all).")
    assert len(told) < 1000


@pytest.mark.parametrize("registry", [DATASETS, ENCODERS, ESTIMATORS], ids=lambda one: one.kind)
def test_an_unknown_name_may_be_of_a_module_that_was_not_imported(registry: Registry) -> None:
    with pytest.raises(ProtoPFaithError, match=r"[Kk]nown: .*; if it is your own, give --import MODULE"):
        registry["newcomer"]


def test_what_ours_raises_and_missing_memory_stay_what_they_are() -> None:
    with pytest.raises(ZeroDivisionError), borrowed("The estimator", ESTIMATORS["owen"]):
        raise ZeroDivisionError
    for kind in (MemoryError, KeyboardInterrupt):
        with pytest.raises(kind), borrowed("The data set", lambda: None):
            raise kind
    with pytest.raises(ProtoPFaithError, match=r"^mine$"), borrowed("The data set", lambda: None):
        raise ProtoPFaithError("mine")
    told = pytest.raises(ProtoPFaithError, match=r"The data set fails with ValueError: ValueError \(line")
    with told, borrowed("The data set", lambda: None):
        raise ValueError


@pytest.mark.parametrize(
    ("typed", "meant"), [("OWEN", "owen"), ("Ower", "owen"), ("ResNet", "ResNet"), ("resnet", "ResNet")]
)
def test_the_nearest_name_may_be_in_another_case(typed: str, meant: str) -> None:
    assert did_you_mean(typed, ["owen", "exact", "ResNet"]).startswith(f"did you mean {meant!r}?")

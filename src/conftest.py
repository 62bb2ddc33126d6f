"""Examples of docstrings that speak of `runs/birds` or `bird.png` run in a folder that has them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

if "PROTOPFAITH_STATE" not in os.environ:  # not the user's own
    _STATE = tempfile.TemporaryDirectory(prefix="protopfaith-state-")  # goes with this process
    os.environ["PROTOPFAITH_STATE"] = _STATE.name

TINY = [
    "data.size=[32, 32]",
    "data.options={train: 32, validation: 16, test: 16}",
    "model.prototypes_per_class=2",
    "model.prototype_channels=8",
    "optimization.batch_size=16",
    "schedule.cycles=1",
    "schedule.pretraining.epochs=1",
    "schedule.warmup.epochs=1",
    "schedule.joint.epochs=1",
    "schedule.classifier.epochs=1",
    "compute.accelerator=cpu",
]


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small run, trained in seconds, and an image."""
    from protopfaith.explanation.picture import to_pil
    from protopfaith.training import load_recipe, train

    folder = tmp_path_factory.mktemp("desk")
    run = train(load_recipe("birds", TINY), folder / "runs" / "birds", progress=False)
    to_pil(run.data().test.image(0)).save(folder / "bird.png")
    return folder


@pytest.fixture(autouse=True)
def _at_the_desk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # nothing is left in the user's own
    monkeypatch.setenv("PROTOPFAITH_CACHE", str(tmp_path / "cache"))
    test = getattr(request.node, "dtest", None)
    text = "" if test is None else "".join(example.source for example in test.examples)
    if "runs/birds" in text or "bird.png" in text:
        monkeypatch.chdir(request.getfixturevalue("desk"))

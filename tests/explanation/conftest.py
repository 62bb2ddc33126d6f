"""One small run, trained in seconds, that all tests of explanations share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from protopfaith.explanation import Explainer, Explanation, explain
from protopfaith.explanation.picture import to_pil
from protopfaith.training import Run, load_recipe, train

OVERRIDES = [
    "data.size=[48, 48]",
    "data.options={train: 64, validation: 16, test: 16}",
    "model.prototypes_per_class=2",
    "model.prototype_channels=16",
    "optimization.batch_size=32",
    "schedule.cycles=1",
    "schedule.pretraining.epochs=2",
    "schedule.warmup.epochs=1",
    "schedule.joint.epochs=1",
    "schedule.classifier.epochs=1",
    "compute.accelerator=cpu",
]


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """Tests run side by side: threads that wait for busy cores make small networks many times slower."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("explanation") / "run"
    return train(load_recipe("birds", OVERRIDES), folder, progress=False)


@pytest.fixture(scope="session")
def explainer(run: Run) -> Explainer:
    return Explainer(run)


@pytest.fixture(scope="session")
def pixels(run: Run) -> torch.Tensor:
    """A test image, uint8."""
    return run.data().test.image(3)


@pytest.fixture(scope="session")
def explanation(explainer: Explainer, pixels: torch.Tensor) -> Explanation:
    return explain(explainer, pixels, name="a <bird> & more", budget=256)


@pytest.fixture(scope="session")
def bird_file(pixels: torch.Tensor, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test image as a file of another size and mode."""
    path = tmp_path_factory.mktemp("images") / "a bird.png"
    to_pil(pixels).resize((100, 60)).convert("RGBA").save(path)
    return path

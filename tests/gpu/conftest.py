"""A run that was trained on the GPU."""

from __future__ import annotations

import pytest

from protopfaith.training import Run, load_recipe, train


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A small run, trained on the GPU in mixed precision."""
    overrides = [
        "data.size=[48, 48]",
        "data.options={train: 64, validation: 16, test: 16}",
        "model.prototypes_per_class=2",
        "model.prototype_channels=16",
        "optimization.batch_size=32",
        "schedule.cycles=3",  # the best cycle is read back into a network on the GPU
        "schedule.pretraining.epochs=2",
        "schedule.warmup.epochs=1",
        "schedule.joint.epochs=1",
        "schedule.classifier.epochs=1",
        "compute.accelerator=cuda",
        "compute.precision=bf16-mixed",
    ]
    return train(load_recipe("birds", overrides), tmp_path_factory.mktemp("gpu") / "run", progress=False)

from __future__ import annotations

from dataclasses import replace

import pytest

from protopfaith.training.checkpoint import Position
from protopfaith.training.metrics import EpochMetrics
from protopfaith.training.saving import advance, is_better
from protopfaith.training.schedule import Stage

STAGES = [
    Stage("joint", 2, 1),
    Stage("classifier", 1, 1, 2),
    Stage("joint", 2, 2, 3),
    Stage("classifier", 1, 2, 5),
]
METRICS = EpochMetrics(
    epoch=0,
    stage="classifier",
    cycle=1,
    stage_epoch=0,
    learning_rate=0.1,
    loss=1.0,
    cross_entropy=1.0,
    cluster=None,
    separation=None,
    train_balanced_accuracy=0.5,
    validation_balanced_accuracy=0.5,
    projected=True,
    distinct_prototypes=1,
    prototypes=1,
    seconds=1.0,
)


def test_every_epoch_is_visited_once() -> None:
    position, visited = Position(), []
    while not position.finished:
        visited.append((position.stage, position.epoch))
        position = advance(position, STAGES, None)
    assert visited == [(0, 0), (0, 1), (1, 0), (2, 0), (2, 1), (3, 0)]


def test_patience_ends_a_run_after_cycles_without_anything_better() -> None:
    position = Position(stage=1)
    assert advance(position, STAGES, 1).finished
    assert not advance(replace(position, improved=True), STAGES, 1).finished


@pytest.mark.parametrize(
    ("accuracy", "best", "projected", "better"),
    [(0.6, 0.5, True, True), (0.5, 0.5, True, False), (0.6, 0.5, False, False), (None, 0.5, True, True)],
)
def test_only_projected_epochs_compete(accuracy, best, projected, better) -> None:
    metrics = replace(METRICS, validation_balanced_accuracy=accuracy, projected=projected)
    assert is_better(metrics, best) is better


def test_a_cycle_that_leaves_nothing_to_be_better_at_is_the_last() -> None:
    end = next(i for i, stage in enumerate(STAGES) if stage.name == "classifier")
    assert end + 1 < len(STAGES)
    last = replace(Position(), stage=end, epoch=STAGES[end].epochs - 1, improved=True)
    assert advance(replace(last, best=1.0), STAGES, None).finished
    assert not advance(replace(last, best=0.99), STAGES, None).finished
    assert not advance(replace(last, best=None), STAGES, None).finished  # without validation images

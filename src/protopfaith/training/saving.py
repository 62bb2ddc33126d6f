"""What a run leaves on disk after every epoch: a row of numbers, the best model, a checkpoint."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from protopfaith.data import ImageData
from protopfaith.network import PatchNetwork, save
from protopfaith.training.checkpoint import (
    Checkpoint,
    Position,
    pack_module,
    pack_optimizer,
    pack_scheduler,
)
from protopfaith.training.metrics import EpochLog, EpochMetrics
from protopfaith.training.recipe import Recipe
from protopfaith.training.run import Run
from protopfaith.training.schedule import Stage

if TYPE_CHECKING:
    from lightning.fabric import Fabric

PERFECT = 1.0
"""Of a validation balanced accuracy: no epoch can be better."""
RESULT = ("epoch", "cycle", "validation_balanced_accuracy", "distinct_prototypes", "prototypes")


class Saver:
    """Knows where the run stands; only the first process writes."""

    def __init__(self, fabric: Fabric, run: Run, recipe: Recipe, data: ImageData, stages: list[Stage]):
        self.fabric, self.run, self.recipe, self.data, self.stages = fabric, run, recipe, data, stages
        self.position = Position()
        self.saved_at = -float("inf")
        self.log: EpochLog | None = None
        self.extras: dict[str, Tensor] = {}
        """Whatever else a checkpoint holds, by name."""

    def __enter__(self) -> Saver:
        if self.fabric.is_global_zero:
            self.log = EpochLog(self.run.folder, self.epochs_done)
        return self

    def __exit__(self, *_: object) -> None:
        if self.log:
            self.log.close()

    @property
    def epochs_done(self) -> int:
        if self.position.stage >= len(self.stages):
            return sum(stage.epochs for stage in self.stages)
        return self.stages[self.position.stage].first_epoch + self.position.epoch

    def finish_epoch(
        self,
        metrics: EpochMetrics,
        model: PatchNetwork,
        head: nn.Module,
        optimizer: Optimizer,
        scheduler: LRScheduler,
    ) -> None:
        """Row, best model, checkpoint: in this order, so that a checkpoint is never ahead of the files."""
        if self.log:
            self.log.write(metrics)
        better = is_better(metrics, self.position.best)
        if better:
            self.position = replace(self.position, best=metrics.validation_balanced_accuracy, improved=True)
            self._save_best(metrics, model)
        self.position = advance(self.position, self.stages, self.recipe.schedule.patience)
        due = time.monotonic() - self.saved_at >= self.recipe.compute.checkpoint_seconds
        if self.fabric.broadcast(due or better or self.position.finished):
            self._save_checkpoint(model, head, optimizer, scheduler)

    def _save_best(self, metrics: EpochMetrics, model: PatchNetwork) -> None:
        if self.fabric.is_global_zero:
            metadata = {
                "preprocessing": self.data.preprocessing.to_dict(),
                "data_fingerprint": self.data.fingerprint,
                "recipe": self._portable_recipe(),
                "result": {
                    **{key: asdict(metrics)[key] for key in RESULT},
                    "linear_probe": self.position.probe,
                    "plain_classifier": self.position.plain,
                },
            }
            save(model.finished(), self.run.model_path, metadata)

    def _portable_recipe(self) -> dict[str, Any]:
        """By which a file is known to be of this run, wherever its images lie."""
        return replace(self.recipe, data=replace(self.recipe.data, root=None)).to_dict()

    def _save_checkpoint(
        self, model: PatchNetwork, head: nn.Module, optimizer: Optimizer, scheduler: LRScheduler
    ) -> None:
        self.saved_at = time.monotonic()
        if self.fabric.is_global_zero:
            tensors, groups = pack_optimizer(optimizer)
            Checkpoint(
                self.position,
                {**pack_module("model", model), **pack_module("head", head), **tensors, **self.extras},
                [None if source is None else source.to_dict() for source in model.sources],
                groups,
                pack_scheduler(scheduler),
                self._portable_recipe(),
            ).save(self.run.checkpoint_path)
        self.fabric.barrier()


def is_better(metrics: EpochMetrics, best: float | None) -> bool:
    """Only epochs with projected prototypes compete; without a validation set the last of them wins."""
    accuracy = metrics.validation_balanced_accuracy
    return metrics.projected and (accuracy is None or best is None or accuracy > best)


def advance(position: Position, stages: list[Stage], patience: int | None) -> Position:
    """The position after one more epoch; finished after the last stage, when `patience` cycles have brought
    nothing better, or when a cycle has left nothing to be better at."""
    stage = stages[position.stage]
    if position.epoch + 1 < stage.epochs:
        return replace(position, epoch=position.epoch + 1)
    position = replace(position, stage=position.stage + 1, epoch=0)
    perfect = False
    if stage.name == "classifier":
        perfect = position.best is not None and position.best >= PERFECT
        stale = 0 if position.improved else position.stale_cycles + 1
        position = replace(position, stale_cycles=stale, improved=False)
    out_of_patience = patience is not None and position.stale_cycles >= patience
    return replace(position, finished=position.stage == len(stages) or out_of_patience or perfect)

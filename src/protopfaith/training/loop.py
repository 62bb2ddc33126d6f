"""The training loop, on Lightning Fabric: CPU, one or many GPUs or machines, mixed precision."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from typing import Any

import torch
from lightning.fabric import Fabric
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from protopfaith.data import ImageData
from protopfaith.training._augmentation import augment
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import PrototypeSource, ProtoPNet, output_channels, save
from protopfaith.training.batches import Batches, open_images, sequential_order, shuffled_order
from protopfaith.training.checkpoint import (
    Checkpoint,
    Position,
    pack_module,
    pack_optimizer,
    pack_scheduler,
    unpack_module,
    unpack_optimizer,
)
from protopfaith.training.initialization import patch_prototypes
from protopfaith.training.metrics import EpochLog, EpochMetrics, add_to_confusion, balanced_accuracy
from protopfaith.training.objectives import ClassifierObjective, PlainObjective, PrototypeObjective
from protopfaith.training.progress import TrainingProgress
from protopfaith.training.projection import count_distinct, project
from protopfaith.training.recipe import Recipe
from protopfaith.training.run import Run
from protopfaith.training.schedule import Stage, make_optimizer, make_scheduler, plan

COSTS = ("loss", "cross_entropy", "cluster", "separation")


class Trainer:
    """Runs the stages of a recipe on one model; all of its state is in ``position`` and the modules."""

    def __init__(
        self,
        fabric: Fabric,
        run: Run,
        recipe: Recipe,
        data: ImageData,
        model: ProtoPNet,
        *,
        stages: list[Stage] | None = None,
        projecting: bool = True,
        progress: bool = True,
    ):
        self.fabric, self.run, self.recipe, self.data = fabric, run, recipe, data
        self.model = model.to(fabric.device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_for(recipe.seed, "head"))
            self.head = nn.Linear(output_channels(model.encoder, model.in_channels), len(data.classes))
        self.head.to(fabric.device)
        if recipe.compute.channels_last:
            self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        if recipe.compute.compile:
            self.model.encoder.compile()
        self.stages = plan(recipe.schedule) if stages is None else stages
        self.projecting = projecting
        self.show_progress = progress and fabric.is_global_zero
        self.position = Position()
        compute = recipe.compute
        self.train_images = open_images(data.train, fabric.device, compute.resident, compute.workers)
        self.validation_images = open_images(data.validation, fabric.device, compute.resident, compute.workers)
        self.saved_at = -float("inf")
        self._resume_from: Checkpoint | None = None

    # --- the whole run

    def fit(self) -> None:
        """Runs what is left of the plan."""
        per_epoch = max(len(self.train_images) // self.recipe.optimization.batch_size, 1)
        total = sum(stage.epochs for stage in self.stages) * per_epoch
        done = self._epochs_done() * per_epoch
        log = EpochLog(self.run.folder, self._epochs_done()) if self.fabric.is_global_zero else None
        with TrainingProgress(self.show_progress, total, done) as self.progress:
            try:
                while not self.position.finished:
                    self._run_stage(self.stages[self.position.stage], log)
            finally:
                if log:
                    log.close()

    def resume(self, checkpoint: Checkpoint) -> None:
        """Continues after the last epoch of ``checkpoint``."""
        unpack_module("model", self.model, checkpoint.tensors)
        unpack_module("head", self.head, checkpoint.tensors)
        self.model.sources = [source and PrototypeSource(**source) for source in checkpoint.sources]
        self.position = checkpoint.position
        self._resume_from = checkpoint

    def _epochs_done(self) -> int:
        if self.position.finished or self.position.stage >= len(self.stages):
            return sum(stage.epochs for stage in self.stages)
        return self.stages[self.position.stage].first_epoch + self.position.epoch

    # --- one stage

    def _run_stage(self, stage: Stage, log: EpochLog | None) -> None:
        self.progress.stage(stage)
        if self.position.epoch == 0:
            self._prepare(stage)
        parts = self._parts()
        for part, parameters in parts.items():
            for parameter in parameters:
                parameter.requires_grad_(part in stage.trained)
        optimizer = make_optimizer(parts, stage, self.recipe)
        objective, fabric_optimizer = self.fabric.setup(self._objective(stage), optimizer)
        scheduler = make_scheduler(optimizer, stage, self.recipe, stage.epochs * self._iterations())
        if self._resume_from is not None and self.position.epoch > 0:
            unpack_optimizer(optimizer, self._resume_from)
            scheduler.load_state_dict(self._resume_from.scheduler)
        self._resume_from = None
        source = self._source(stage)
        validate = self._validation(stage)
        for epoch in range(self.position.epoch, stage.epochs):
            started = time.monotonic()
            self._seed(stage, epoch)
            self._set_modes(stage)
            sums = self._train_epoch(stage, objective, fabric_optimizer, scheduler, source)
            metrics = self._measure(stage, sums, validate, optimizer, started)
            self._finish_epoch(stage, metrics, optimizer, scheduler, log)

    def _prepare(self, stage: Stage) -> None:
        """What happens once, before a stage's first epoch."""
        recipe = self.recipe
        self._seed(stage, -1)
        first = next((other for other in self.stages if other.name != "pretraining"), None)
        if stage == first and recipe.model.initialization != "random" and stage.name != "classifier":
            evidence = recipe.model.initialization == "evidence"
            generator = torch.Generator().manual_seed(seed_for(recipe.seed, "patches"))
            head = self.head if evidence else None
            prototypes = patch_prototypes(
                self.model, self.train_images, self.data.preprocessing, generator, head
            )
            self.model.prototypes.data.copy_(self.fabric.broadcast(prototypes))
        if stage.projected and self.projecting:
            project(
                self.model,
                self.train_images,
                self.data.train,
                self.data.preprocessing,
                distinct=recipe.projection.distinct,
                rank=self.fabric.global_rank,
                ranks=self.fabric.world_size,
                sum_over_ranks=self._sum,
            )

    def _parts(self) -> dict[str, list[nn.Parameter]]:
        return {
            "encoder": list(self.model.encoder.parameters()),
            "features": list(self.model.features.parameters()),
            "prototypes": [self.model.prototypes],
            "classifier": list(self.model.classifier.parameters()),
            "head": list(self.head.parameters()),
        }

    def _objective(self, stage: Stage) -> nn.Module:
        if stage.name == "pretraining":
            smoothing = self.recipe.schedule.pretraining.label_smoothing
            return PlainObjective(self.model.encoder, self.head, smoothing)
        if stage.name == "classifier":
            return ClassifierObjective(self.model, self.recipe.costs)
        return PrototypeObjective(self.model, self.recipe.costs)

    def _set_modes(self, stage: Stage) -> None:
        """In the F stage V and Z stay in evaluation mode: drifting batch norm would undo the projection."""
        self.model.train(stage.name != "classifier")
        if stage.name == "warmup" and self.recipe.schedule.warmup.batch_norm == "eval":
            self.model.encoder.eval()

    # --- one epoch

    def _iterations(self) -> int:
        return max(len(self.train_images) // self.recipe.optimization.batch_size, 1)

    def _source(self, stage: Stage) -> Callable[[list[Tensor]], Iterator[tuple[Tensor, Tensor]]]:
        """Gives a stage's training batches: augmented images, or distances for the F stage."""
        if stage.name != "classifier":
            return self._augmented
        if self.recipe.schedule.classifier.augment:
            return self._augmented_distances
        distances, labels = self._distances(self.train_images), self.train_images.labels
        return lambda order: ((distances[i], labels[i]) for i in (part.to(labels.device) for part in order))

    def _augmented(self, order: list[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        for pixels, labels in self.train_images.batches(order):
            images = self.data.preprocessing.normalize(augment(pixels, self.recipe.augmentation, self.generator))
            yield self._format(images), labels

    def _augmented_distances(self, order: list[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        for images, labels in self._augmented(order):
            with torch.no_grad(), self.fabric.autocast():
                distances = self.model.distances(images)
            yield distances, labels

    def _format(self, images: Tensor) -> Tensor:
        if self.recipe.compute.channels_last:
            return images.contiguous(memory_format=torch.channels_last)
        return images

    def _train_epoch(
        self,
        stage: Stage,
        objective: nn.Module,
        optimizer: Optimizer,
        scheduler: LRScheduler,
        source: Callable[[list[Tensor]], Iterator[tuple[Tensor, Tensor]]],
    ) -> dict[str, Tensor]:
        """One pass over the training images; returns sums of the costs and the confusion matrix. Nothing here
        waits for the device."""
        classes = len(self.data.classes)
        sums = {"confusion": torch.zeros(classes, classes, dtype=torch.long, device=self.fabric.device)}
        order = self._shuffled(stage)
        for images, labels in source(order):
            optimizer.zero_grad()
            result = objective(images, labels)
            self.fabric.backward(result["loss"])
            if self.recipe.optimization.clip is not None:
                self.fabric.clip_gradients(objective, optimizer, max_norm=self.recipe.optimization.clip)
            optimizer.step()
            scheduler.step()
            for name in COSTS:
                if name in result:
                    sums[name] = sums.get(name, 0) + result[name].detach() / len(order)
            add_to_confusion(sums["confusion"], result["logits"], labels)
            self.progress.advance()
        return sums

    def _shuffled(self, stage: Stage) -> list[Tensor]:
        seed = seed_for(self.recipe.seed, "shuffle", stage.name, stage.cycle, self.position.epoch)
        return shuffled_order(
            len(self.train_images),
            self.recipe.optimization.batch_size,
            torch.Generator().manual_seed(seed),
            self.fabric.global_rank,
            self.fabric.world_size,
        )

    def _seed(self, stage: Stage, epoch: int) -> None:
        """Every epoch's random numbers follow from (seed, stage, epoch, rank) alone: nothing to save, and a
        resumed run draws what the uninterrupted one would have."""
        seed = seed_for(self.recipe.seed, stage.name, stage.cycle, epoch, self.fabric.global_rank)
        torch.manual_seed(seed)  # dropout and the like inside encoders
        self.generator = torch.Generator(self.fabric.device).manual_seed(seed)

    # --- measuring

    def _validation(self, stage: Stage) -> Callable[[], float | None]:
        """A function that gives the validation balanced accuracy, or None where it is not measured."""
        if len(self.validation_images) == 0:
            return lambda: None
        if stage.name == "pretraining":
            plain = PlainObjective(self.model.encoder, self.head)
            return lambda: self._balanced_accuracy(self._outputs(self.validation_images, plain.logits))
        if stage.projected:  # distances do not change in this stage
            distances = self._distances(self.validation_images)
            return lambda: self._balanced_accuracy(self.model.logits(distances))
        if self.recipe.compute.validate == "projected":
            return lambda: None
        return lambda: self._balanced_accuracy(self.model.logits(self._distances(self.validation_images)))

    @torch.no_grad()
    def _balanced_accuracy(self, logits: Tensor) -> float:
        classes = len(self.data.classes)
        confusion = torch.zeros(classes, classes, dtype=torch.long, device=logits.device)
        add_to_confusion(confusion, logits, self.validation_images.labels)
        return balanced_accuracy(confusion)

    def _distances(self, images: Batches) -> Tensor:
        return self._outputs(images, self.model.distances)

    @torch.no_grad()
    def _outputs(self, images: Batches, function: Callable[[Tensor], Tensor]) -> Tensor:
        """``function`` of every image, un-augmented, in evaluation mode and float32: N x outputs."""
        self.model.eval()
        batch_size = max(self.recipe.optimization.batch_size, 64)
        order = sequential_order(len(images), batch_size, self.fabric.global_rank, self.fabric.world_size)
        outputs: Tensor | None = None
        for indices, (pixels, _) in zip(order, images.batches(order), strict=True):
            batch = function(self._format(self.data.preprocessing.normalize(pixels)))
            if outputs is None:
                outputs = batch.new_zeros(len(images), batch.shape[1])
            outputs[indices.to(batch.device)] = batch
        if outputs is None:
            raise ProtoPFaithError("There are fewer images than processes; use fewer devices.")
        return self._sum(outputs)

    def _sum(self, tensor: Tensor) -> Tensor:
        if self.fabric.world_size == 1:
            return tensor
        return self.fabric.all_reduce(tensor, reduce_op="sum")  # type: ignore[return-value]

    def _measure(
        self,
        stage: Stage,
        sums: dict[str, Tensor],
        validate: Callable[[], float | None],
        optimizer: Optimizer,
        started: float,
    ) -> EpochMetrics:
        ranks = self.fabric.world_size
        values = {name: float(self._sum(sums[name])) / ranks if name in sums else None for name in COSTS}
        epoch = stage.first_epoch + self.position.epoch
        loss = values["loss"]
        if loss is None or loss != loss or abs(loss) == float("inf"):
            raise ProtoPFaithError(
                f"The loss became {loss} in epoch {epoch} ({stage.name}); start a new run with a lower learning rate."
            )
        return EpochMetrics(
            epoch=epoch,
            stage=stage.name,
            cycle=stage.cycle,
            stage_epoch=self.position.epoch,
            learning_rate=max(float(group["lr"]) for group in optimizer.param_groups),
            loss=loss,
            cross_entropy=values["cross_entropy"] or 0.0,
            cluster=values["cluster"],
            separation=values["separation"],
            train_balanced_accuracy=balanced_accuracy(self._sum(sums["confusion"])),
            validation_balanced_accuracy=validate(),
            projected=stage.projected,
            distinct_prototypes=count_distinct(self.model) if stage.projected else None,
            prototypes=len(self.model.prototypes),
            seconds=round(time.monotonic() - started, 3),
        )

    # --- keeping

    def _finish_epoch(
        self,
        stage: Stage,
        metrics: EpochMetrics,
        optimizer: Optimizer,
        scheduler: LRScheduler,
        log: EpochLog | None,
    ) -> None:
        """Row, best model, checkpoint: in this order, so that a checkpoint never knows more than the files."""
        if log:
            log.write(metrics)
        self.progress.epoch(stage, metrics)
        better = self._is_best(metrics)
        if better:
            self._save_best(metrics)
        self._advance(stage)
        due = time.monotonic() - self.saved_at >= self.recipe.compute.checkpoint_seconds
        if self.fabric.broadcast(due or better or self.position.finished):
            self._save_checkpoint(optimizer, scheduler)

    def _is_best(self, metrics: EpochMetrics) -> bool:
        """Only epochs with projected prototypes compete; without a validation set the last one wins."""
        accuracy = metrics.validation_balanced_accuracy
        if not metrics.projected:
            return False
        return accuracy is None or self.position.best is None or accuracy > self.position.best

    def _save_best(self, metrics: EpochMetrics) -> None:
        self.position = replace(self.position, best=metrics.validation_balanced_accuracy, improved=True)
        if self.fabric.is_global_zero:
            keys = ("epoch", "cycle", "validation_balanced_accuracy", "distinct_prototypes", "prototypes")
            metadata = {
                "preprocessing": self.data.preprocessing.to_dict(),
                "data_fingerprint": self.data.fingerprint,
                "recipe": self.recipe.to_dict(),
                "result": {key: asdict(metrics)[key] for key in keys},
            }
            save(self.model, self.run.model_path, metadata)

    def _advance(self, stage: Stage) -> None:
        position = replace(self.position, epoch=self.position.epoch + 1)
        if position.epoch == stage.epochs:
            position.stage, position.epoch = position.stage + 1, 0
            if stage.name == "classifier":
                position.stale_cycles = 0 if position.improved else position.stale_cycles + 1
                position.improved = False
            patience = self.recipe.schedule.patience
            stale = patience is not None and position.stale_cycles >= patience
            position.finished = position.stage == len(self.stages) or stale
        self.position = position

    def _save_checkpoint(self, optimizer: Optimizer, scheduler: LRScheduler) -> None:
        self.saved_at = time.monotonic()
        if self.fabric.is_global_zero:
            tensors, groups = pack_optimizer(optimizer)
            Checkpoint(
                self.position,
                {**pack_module("model", self.model), **pack_module("head", self.head), **tensors},
                [source and asdict(source) for source in self.model.sources],
                groups,
                pack_scheduler(scheduler),
            ).save(self.run.checkpoint_path)
        self.fabric.barrier()


def seed_for(*parts: Any) -> int:
    """A seed that depends on all of ``parts``, well mixed."""
    text = "/".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")


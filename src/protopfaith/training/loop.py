"""The training loop, on Lightning Fabric: CPU, one or many GPUs or machines, mixed number formats."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from protopfaith.data import ImageData
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import reason
from protopfaith.network import distinct_prototypes, output_channels
from protopfaith.network.checkpoint import read_sources, read_state, restore
from protopfaith.training.batch_norm import hold_batch_norm
from protopfaith.training.blocks import encoder_blocks
from protopfaith.training.checkpoint import (
    Checkpoint,
    check_tensors,
    pack_module,
    unpack_module,
    unpack_optimizer,
    unpack_scheduler,
)
from protopfaith.training.collapse import signs_of_collapse
from protopfaith.training.family import TRAINERS
from protopfaith.training.graphs import GraphedEncoder, can_be_captured
from protopfaith.training.hooks import Hooks
from protopfaith.training.images import TrainingImages, seed_for
from protopfaith.training.metrics import EpochMetrics, add_to_confusion, balanced_accuracy, empty_confusion
from protopfaith.training.objectives import classes_objective
from protopfaith.training.plain import PlainClassifier
from protopfaith.training.probe import class_weights, probe_encoder
from protopfaith.training.progress import TrainingProgress, describe_data
from protopfaith.training.projection import count_distinct
from protopfaith.training.recipe import Recipe
from protopfaith.training.run import Run
from protopfaith.training.saving import PERFECT, Saver, is_better
from protopfaith.training.schedule import (
    LOST,
    Stage,
    make_optimizer,
    make_scheduler,
    trained_parts,
)
from protopfaith.training.streams import BatchStream, stage_batches
from protopfaith.training.validation import prototype_accuracy, validation

if TYPE_CHECKING:
    from lightning.fabric import Fabric

KEPT = "kept."
COSTS = ("loss", "cross_entropy", "cluster", "separation")


@TRAINERS.register("protopnet")
class Trainer(Hooks):
    """Runs the stages of a recipe on one model. A family overrides what it does differently: methods
    without a leading underscore, and those of `Hooks`, are meant for that.

    Args:
        fabric: where and in which number format it computes
        run: the folder that is written to
        recipe: how to train
        data: images and labels
        model: the network, which is trained in place
        stages: those to go through; None: all of the recipe
        projecting: prototypes become patches of training images after joint stages
        progress: show a bar

    >>> from protopfaith.training import TRAINERS
    >>> issubclass(TRAINERS["prototree"], Trainer)
    True
    """

    learns_from_copies = True

    def __init__(
        self,
        fabric: Fabric,
        run: Run,
        recipe: Recipe,
        data: ImageData,
        model: Any,
        *,
        stages: list[Stage] | None = None,
        projecting: bool = True,
        progress: bool = True,
    ):
        self.fabric, self.run, self.recipe, self.data, self.model = fabric, run, recipe, data, model
        self.stages = self.stages_of(recipe.schedule, len(data.train)) if stages is None else stages
        self.projecting = projecting
        self.images = TrainingImages(fabric, recipe, data)
        self.saver = Saver(fabric, run, recipe, data, self.stages)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_for(recipe.seed, "head"))
            self.head = nn.Linear(output_channels(model.encoder, model.in_channels), len(data.classes))
        for module in (self.model, self.head):
            module.to(fabric.device)
        self.plain = PlainClassifier(self.model, self.head, self.images)
        self.log_scale = nn.Parameter(torch.zeros((), device=fabric.device))
        self.class_weights = None
        if recipe.costs.balanced:
            self.class_weights = class_weights(data.train.labels, len(data.classes)).to(fabric.device)
        self.kept: dict[str, Tensor] = {}
        """What a later stage may go back to: V and head of the probe, or the head of the best model."""
        if recipe.compute.channels_last:
            self.model.to(memory_format=torch.channels_last)
        if recipe.compute.compile:
            self.model.encoder.compile()
        self.generator = torch.Generator(fabric.device)
        iterations = sum(stage.epochs for stage in self.stages) * self.images.iterations
        shown = progress and fabric.is_global_zero
        self.progress = TrainingProgress(shown, iterations, last_part=self.last_part)
        self._checkpoint: Checkpoint | None = None

    # --- the whole run

    def resume(self, checkpoint: Checkpoint) -> None:
        """Continues after the last epoch of `checkpoint`; raises if it is another network's.

        Args:
            checkpoint: what an interrupted training left
        """
        position, path = checkpoint.position, self.run.checkpoint_path
        ended = position.stage >= len(self.stages) and not position.finished
        if (
            ended
            or max(position.stage, position.stale_cycles) > len(self.stages)
            or (position.stage < len(self.stages) and position.epoch >= self.stages[position.stage].epochs)
        ):
            raise ProtoPFaithError(
                f"{path} stands at a stage or an epoch that this run's recipe does not have; start a new run."
            )
        try:
            self._unpack(checkpoint.tensors)
        except (RuntimeError, KeyError, TypeError, ValueError) as error:
            raise ProtoPFaithError(
                f"The tensors in {path} are not those of this run's network ({reason(error)}); start a new "
                "run."
            ) from error
        self.model.sources = read_sources(checkpoint.sources, len(self.model.prototypes), str(path))
        self.saver.position = checkpoint.position
        self._checkpoint = checkpoint

    def _unpack(self, tensors: dict[str, Tensor]) -> None:
        """Fills all that is trained; raises if something is missing, of another shape, or not a number."""
        owners = self.model.prototype_classes.clone()
        unpack_module("model", self.model, tensors)
        if not torch.equal(owners, self.model.prototype_classes):
            raise ValueError("prototypes belong to other classes")
        unpack_module("head", self.head, tensors)
        scale = {"log_scale": tensors.get("log_scale", torch.zeros(()))}
        check_tensors(scale, {"log_scale": self.log_scale})
        self.log_scale.data.copy_(scale["log_scale"])
        kept = {name.removeprefix(KEPT): one for name, one in tensors.items() if name.startswith(KEPT)}
        if kept:
            whole, head = self.plain.state(), pack_module("head", self.head)
            check_tensors(kept, head if kept.keys() == head.keys() else whole)
        self.kept = {name: tensor.to(self.fabric.device) for name, tensor in kept.items()}

    def fit(self) -> None:
        """Runs the stages that are left."""
        with self.saver, self.progress:
            self.progress.begin(self.saver.epochs_done * self.images.iterations)
            if not self.saver.epochs_done:
                self.progress.say(describe_data(self.data))
            while not self.saver.position.finished:
                self._run_stage(self.stages[self.saver.position.stage])
            if self.saver.position.stage < len(self.stages):
                self.progress.say(self._why_early())

    def _why_early(self) -> str:
        """Why later cycles are left out."""
        best = self.saver.position.best
        if best is not None and best >= PERFECT:
            return "All validation images are right, so no further cycle could be better: training ends here."
        return f"{self.saver.position.stale_cycles} cycles brought nothing better: training ends here."

    # --- one stage

    def _run_stage(self, stage: Stage) -> None:
        self.progress.stage(stage)
        first_epoch = self.saver.position.epoch
        if first_epoch == 0:
            self.prepare_stage(stage)
        optimizer = make_optimizer(
            self._trainable(stage),
            stage,
            self.recipe,
            blocks=encoder_blocks(self.model.encoder),
            lost_cycles=self.saver.position.stale_cycles if stage.name == "joint" else 0,
            moved=self.saver.position.moved,
            iterations=stage.epochs * self.images.iterations,
        )
        objective, fabric_optimizer = self.fabric.setup(self.objective(stage), optimizer)
        scheduler = self.scheduler(optimizer, stage, stage.epochs * self.images.iterations)
        if self._checkpoint is not None and first_epoch > 0:
            self._restore(optimizer, scheduler, self._checkpoint)
        self._checkpoint = None
        stream = stage_batches(stage, self.model, self.images, self.generator)
        validate = validation(stage, self.model, self.head, self.images)
        graphs = self._graphs(stage.epochs - first_epoch)
        for epoch in range(first_epoch, stage.epochs):
            started = time.monotonic()
            self._seed(stage, epoch)
            self._set_modes(stage)
            order = self.images.order(stage.name, stage.cycle, epoch)
            with graphs.replaying():
                sums = self.train_epoch(objective, fabric_optimizer, scheduler, stream, order)
            if epoch + 1 == stage.epochs:
                self.conclude_stage(stage)
            rate = max(float(group["lr"]) for group in optimizer.param_groups)
            metrics = self.measure_epoch(
                stage, epoch, sums, validation=validate(), rate=rate, started=started
            )
            self.progress.epoch(stage, metrics)
            self._remember(stage, metrics)
            self.saver.extras = {KEPT + name: tensor for name, tensor in self.kept.items()}
            self.saver.extras["log_scale"] = self.log_scale.detach()
            self.saver.finish_epoch(metrics, self.model, self.head, optimizer, scheduler)
        graphs.close()

    def _restore(self, optimizer: Optimizer, scheduler: LRScheduler, checkpoint: Checkpoint) -> None:
        try:
            unpack_optimizer(optimizer, checkpoint)
            unpack_scheduler(scheduler, checkpoint)
        except (RuntimeError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise ProtoPFaithError(
                f"The optimizer's state in {self.run.checkpoint_path} is not that of this stage; start a new "
                "run."
            ) from error

    def prepare_stage(self, stage: Stage) -> None:
        """What happens once, before a stage's first epoch.

        Args:
            stage: that begins
        """
        if stage.name == "pretraining" and self.recipe.schedule.pretraining.probe:
            self._start_from_probe()
        if stage.name == "joint":
            self._recover(stage)
        first = next((other for other in self.stages if other.name != "pretraining"), None)
        if stage == first and stage.name != "classifier" and self.recipe.model.initialization != "random":
            self.start_prototypes()
        if stage.projected and self.projecting:
            self.project_prototypes()

    def start_prototypes(self) -> None:
        """Puts prototypes where training starts from; not called where they start at random."""
        head = self.head if self.recipe.model.initialization == "evidence" else None
        generator = torch.Generator().manual_seed(seed_for(self.recipe.seed, "patches"))
        prototypes = self.start(self.model, self.images.train, self.data.preprocessing, generator, head)
        self.model.prototypes.data.copy_(self.fabric.broadcast(prototypes))

    def project_prototypes(self) -> None:
        """Makes prototypes parts of training images, and says what that has spoiled."""
        before = prototype_accuracy(self.model, self.images)
        self._project(distinct=self.recipe.projection.distinct)
        after = prototype_accuracy(self.model, self.images)
        for sentence in signs_of_collapse(before, after, distinct_prototypes(self.model)):
            self.progress.say(sentence)

    def _project(self, *, distinct: bool = False) -> None:
        self.project(
            self.model,
            self.images.train,
            self.data.train,
            self.data.preprocessing,
            distinct=distinct,
            rank=self.fabric.global_rank,
            ranks=self.fabric.world_size,
            sum_over_ranks=self.images.sum,
        )

    def _start_from_probe(self) -> None:
        """The head becomes a linear probe of V as it came, and both are kept; V without weights has none."""
        if self.recipe.model.weights is None and self.model.encoder_name is not None:
            return
        probe, sentences = probe_encoder(self.model, self.images, len(self.data.classes))
        for sentence in sentences:
            self.progress.say(sentence)
        self.kept = self.plain.start_from(self.fabric.broadcast(probe))
        accuracy = probe.accuracy if len(self.images.validation) else None
        self.saver.position = replace(self.saver.position, probe=accuracy)

    def _recover(self, stage: Stage) -> None:
        """A later cycle starts from the best model; repeated prototypes start anew.

        After a cycle that has won, that is the best epoch of its F; after a lost one, an earlier cycle's.
        """
        position = self.saver.position
        if self.recipe.schedule.lost_cycle == "go_on" or stage.cycle < 2:
            return
        if position.stale_cycles:
            self.progress.say(
                f"Cycle {stage.cycle - 1} brought nothing better: cycle {stage.cycle} starts from the best "
                f"model so far, at {LOST**position.stale_cycles:g} times the rate."
            )
        path = self.run.model_path
        tensors, sources = self.fabric.broadcast(read_state(path) if self.fabric.is_global_zero else ({}, []))
        restore(self.model, tensors, sources, path)
        if self.kept:
            unpack_module("head", self.head, self.kept)
        repeated = distinct_prototypes(self.model).duplicates
        if repeated:
            self.progress.say(
                f"{len(repeated)} prototypes repeat another of their class and start anew on other patches."
            )
            generator = torch.Generator().manual_seed(seed_for(self.recipe.seed, "anew", stage.cycle))
            fresh = self.start(self.model, self.images.train, self.data.preprocessing, generator)
            fresh = self.fabric.broadcast(fresh)
            self.model.prototypes.data[list(repeated)] = fresh[list(repeated)]

    def conclude_stage(self, stage: Stage) -> None:
        """What happens once, after a stage's last epoch and before that is validated.

        Args:
            stage: that ends
        """
        if stage.name == "pretraining" and self.kept:
            start, self.kept = self.kept, {}
            validate = validation(stage, self.model, self.head, self.images)
            moved = self.plain.move_as_far_as_it_helps(start, validate)
            self.saver.position = replace(self.saver.position, moved=moved.share)
            for sentence in moved.sentences():
                self.progress.say(sentence)
        scaled = self.recipe.model.logit_scale and hasattr(self.model, "classifier")
        if stage.name in ("warmup", "joint") and scaled:
            with torch.no_grad():
                self.model.classifier.weight.mul_(self.log_scale.exp())
                self.log_scale.zero_()

    def _remember(self, stage: Stage, metrics: EpochMetrics) -> None:
        """What the summary will compare, and what a later cycle may need again."""
        if stage.name == "pretraining":
            plain = metrics.validation_balanced_accuracy
            self.saver.position = replace(self.saver.position, plain=plain)
        if self.recipe.costs.companion and is_better(metrics, self.saver.position.best):
            self.kept = {name: tensor.clone() for name, tensor in pack_module("head", self.head).items()}

    def _trainable(self, stage: Stage) -> dict[str, list[nn.Parameter]]:
        """The parameters of every part; only those that `stage` trains will have gradients."""
        parts = {
            "encoder": list(self.model.encoder.parameters()),
            "features": list(self.model.features.parameters()),
            "prototypes": [self.model.prototypes],
            "classifier": self.last_parameters(),
            "head": list(self.head.parameters()),
            "scale": [self.log_scale],
        }
        trained = trained_parts(stage, self.recipe)
        for part, parameters in parts.items():
            for parameter in parameters:
                parameter.requires_grad_(part in trained)
        return parts

    def last_parameters(self) -> list[nn.Parameter]:
        """What learns after projection: F's weights."""
        return list(self.model.classifier.parameters())

    def objective(self, stage: Stage) -> nn.Module:
        """What a stage minimizes: a module of images (distances, as `Exact`, after projection) and labels
        that gives a dict with `loss`, `cross_entropy` and `logits`.

        Args:
            stage: which one
        """
        return classes_objective(stage.name, self.model, self.head, self.recipe, **self._told())

    def _told(self) -> dict[str, Any]:
        """What objectives are told beside the network: weights of the classes, and the logits' factor."""
        scale = self.log_scale if self.recipe.model.logit_scale else None
        return {"weights": self.class_weights, "log_scale": scale}

    def scheduler(self, optimizer: Optimizer, stage: Stage, iterations: int) -> LRScheduler:
        """Learning rates over the iterations of a stage.

        Args:
            optimizer: whose rates are the highest
            stage: which one
            iterations: of the whole stage; it is stepped after every one
        """
        return make_scheduler(optimizer, stage, self.recipe, iterations)

    def _graphs(self, epochs: int) -> GraphedEncoder:
        """V for the epochs of a stage that are left: its steps as CUDA graphs, where that can be."""
        compute = self.recipe.compute
        possible = compute.graphs == "auto" and can_be_captured(
            self.fabric.device, self.fabric.world_size, compiled=compute.compile
        )
        steps = epochs * self.images.iterations if possible else 0
        return GraphedEncoder(self.model.encoder, self.progress.say, steps)

    def _set_modes(self, stage: Stage) -> None:
        """In the F stage V and Z stay in evaluation mode: drifting batch norm would undo the projection.
        Where V is still as it came, so are its batch norms: the head knows nothing else."""
        self.model.train(stage.name != "classifier")
        if stage.name == "joint" and self.saver.position.moved == 0:
            hold_batch_norm(self.model.encoder)
        if stage.name == "warmup" and self.recipe.schedule.warmup.batch_norm == "eval":
            self.model.encoder.eval()

    # --- one epoch

    def _seed(self, stage: Stage, epoch: int) -> None:
        """Every epoch's random numbers follow from (seed, stage, epoch, rank) alone: nothing to save, and a
        resumed run draws what the uninterrupted one would have."""
        seed = seed_for(self.recipe.seed, stage.name, stage.cycle, epoch, self.fabric.global_rank)
        torch.manual_seed(seed)  # dropout and the like inside encoders
        self.generator.manual_seed(seed)

    def train_epoch(
        self,
        objective: nn.Module,
        optimizer: Optimizer,
        scheduler: LRScheduler,
        stream: BatchStream,
        order: list[Tensor],
    ) -> dict[str, Tensor]:
        """One pass over `order`; mean costs and confusion matrix. Nothing here waits for the device.

        Args:
            objective: of the stage
            optimizer: of what the stage trains
            scheduler: of its learning rates
            stream: makes batches of what `order` says
            order: images, batch by batch
        """
        classes = len(self.data.classes)
        sums = {"confusion": empty_confusion(self.data.train.labels, classes, self.fabric.device)}
        for inputs, labels in stream(order):
            optimizer.zero_grad()
            result = objective(inputs, labels)
            self.fabric.backward(result["loss"])
            if self.recipe.optimization.clip is not None:
                # What is not finite shows in the loss; looking for it here would wait for the device.
                self.fabric.clip_gradients(
                    objective,
                    optimizer,
                    max_norm=self.recipe.optimization.clip,
                    error_if_nonfinite=False,
                )
            optimizer.step()
            scheduler.step()
            self.model.settle_prototypes()
            self.after_step(result, labels, len(order))
            for name in COSTS:
                if name in result:
                    sums[name] = sums.get(name, 0) + result[name].detach() / len(order)
            add_to_confusion(sums["confusion"], result["logits"], labels)
            self.progress.advance()
        return sums

    def after_step(self, result: dict[str, Tensor], labels: Tensor, batches: int) -> None:
        """What a family does after every step.

        Args:
            result: of the objective
            labels: of the batch
            batches: of an epoch
        """

    def measure_epoch(
        self,
        stage: Stage,
        epoch: int,
        sums: dict[str, Tensor],
        *,
        validation: float | None,
        rate: float,
        started: float,
    ) -> EpochMetrics:
        """What is known about an epoch after it.

        Args:
            stage: that it belongs to
            epoch: its number in the stage
            sums: of `train_epoch`
            validation: balanced accuracy; None where nothing was validated
            rate: the learning rate
            started: when it began, in seconds
        """
        ranks = self.fabric.world_size
        values = {name: float(self.images.sum(sums[name])) / ranks for name in COSTS if name in sums}
        if not math.isfinite(values["loss"]):
            # By the end of the epoch every weight is not a number: where it began cannot be told any more.
            rate_of = "schedule.pretraining" if stage.name == "pretraining" else "optimization"
            raise ProtoPFaithError(
                f"The loss became {values['loss']} in epoch {stage.first_epoch + epoch} ({stage.name}); "
                f"start a new run with a lower {rate_of}.learning_rate, or with optimization.clip=5."
            )
        return EpochMetrics(
            epoch=stage.first_epoch + epoch,
            stage=stage.name,
            cycle=stage.cycle,
            stage_epoch=epoch,
            learning_rate=rate,
            loss=values["loss"],
            cross_entropy=values["cross_entropy"],
            cluster=values.get("cluster"),
            separation=values.get("separation"),
            train_balanced_accuracy=balanced_accuracy(self.images.sum(sums["confusion"])),
            validation_balanced_accuracy=validation,
            projected=stage.projected,
            distinct_prototypes=count_distinct(self.model) if stage.projected else None,
            prototypes=len(self.model.prototypes),
            seconds=round(time.monotonic() - started, 3),
        )

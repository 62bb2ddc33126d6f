"""Training of a ProtoTree (Nauta et al., 2021): nodes by gradients, leaves without.

The stages are those of every run. The plain classifier may come first; then Z and the prototypes alone, the
encoder frozen; then all of them, at a rate that milestones halve. What is minimized is the negative log
likelihood of the mixture over leaves. After every step the leaves take in what the batch says of them. Then
leaves that know nothing go, prototypes become patches of training images, and leaves alone go on learning.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler, MultiStepLR

from protopfaith.data import ImageData
from protopfaith.dtypes import unrounded
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import FAMILIES, PatchNetwork, ProtoTree, distinct_prototypes
from protopfaith.network.tree import log_mixture
from protopfaith.training.collapse import signs_of_fall
from protopfaith.training.families.prototree.pruning import prune_tree
from protopfaith.training.families.prototree.start import (
    ROUNDS,
    scale_features,
    split_classes,
    start_leaves,
    typical_classes,
)
from protopfaith.training.family import TRAINERS
from protopfaith.training.hooks import own_options
from protopfaith.training.images import seed_for
from protopfaith.training.initialization import patch_prototypes
from protopfaith.training.loop import Trainer
from protopfaith.training.losses import CostWeights, companion_cost
from protopfaith.training.metrics import EpochMetrics, add_to_confusion
from protopfaith.training.objectives import Exact, PlainObjective, plain_logits
from protopfaith.training.recipe import Recipe
from protopfaith.training.recipe_sections import ScheduleRecipe
from protopfaith.training.run import Run
from protopfaith.training.schedule import Stage, make_stages
from protopfaith.training.streams import BatchStream
from protopfaith.training.validation import prototype_accuracy

if TYPE_CHECKING:
    from lightning.fabric import Fabric


SOME = 256  # images that distances are measured on


def usual_depth(classes: int) -> int:
    """One level more than the classes need for a leaf each.

    >>> usual_depth(8), usual_depth(200)
    (4, 9)
    """
    return math.ceil(math.log2(classes)) + 1


def leaf_counts(
    ways: Tensor, log_distributions: Tensor, logits: Tensor, labels: Tensor, weights: Tensor | None = None
) -> Tensor:
    r"""How many images of each class each leaf accounts for: (leaves, C).

    Image i of class y counts for leaf l with $\pi_{il}\,p_{ly} / \hat y_{iy}$: the probability to come there,
    times that of the class in the leaf, over that of the class in the whole tree. Over all leaves it is one.

    Args:
        ways: log probabilities to come to the leaves, (B, leaves)
        log_distributions: of the classes in the leaves, (leaves, C)
        logits: log probabilities of the classes, (B, C)
        labels: (B,)
        weights: of the classes, (C,)
    """
    denominators = logits.gather(1, labels[:, None])
    shares = (ways + log_distributions[:, labels].T - denominators).exp()
    if weights is not None:
        shares = shares * weights[labels][:, None]
    return torch.zeros_like(log_distributions).index_add_(1, labels, shares.T)


class TreeObjective(nn.Module):
    """The negative log likelihood of the mixture, and the companion's cost if there is one."""

    class_weights: Tensor | None

    def __init__(
        self,
        model: ProtoTree,
        weights: CostWeights,
        head: nn.Linear | None = None,
        class_weights: Tensor | None = None,
    ):
        super().__init__()
        self.model, self.weights, self.head = model, weights, head
        self.register_buffer("class_weights", class_weights, persistent=False)

    def forward(self, images: Tensor, labels: Tensor) -> dict[str, Tensor]:
        encoded = self.model.encoder(images)
        result = tree_cost(self.model, self.model.encoded_distances(encoded), labels, self.class_weights)
        if self.head is not None:
            plain = plain_logits(self.head, encoded).float()
            smoothing = self.weights.label_smoothing
            companion = companion_cost(result["log_p"], plain, labels, smoothing, self.class_weights)
            result["loss"] = result["loss"] + self.weights.companion * companion
        return result


class LeafObjective(nn.Module):
    """The same on distances: nodes are fixed, and leaves learn without gradients."""

    class_weights: Tensor | None

    def __init__(self, model: ProtoTree, class_weights: Tensor | None = None):
        super().__init__()
        self.leaves = model.leaves
        self._model = [model]  # in a list: not a submodule, nothing else is trained here
        self.register_buffer("class_weights", class_weights, persistent=False)

    def forward(self, inputs: Exact, labels: Tensor) -> dict[str, Tensor]:
        return tree_cost(self._model[0], inputs.tensor, labels, self.class_weights)


def tree_cost(
    model: ProtoTree, distances: Tensor, labels: Tensor, class_weights: Tensor | None
) -> dict[str, Tensor]:
    """The cost, and what leaves learn from: `ways` to them and `logits`."""
    with unrounded(distances.device.type):
        ways = model.leaf_log_probabilities(distances.float())
        log_p = log_mixture(ways, model.log_distributions())
        loss = functional.nll_loss(log_p, labels, class_weights)
    return {
        "loss": loss,
        "cross_entropy": loss.detach(),
        "logits": log_p.detach(),
        "log_p": log_p,
        "ways": ways.detach(),
    }


@TRAINERS.register("prototree")
class TreeTrainer(Trainer):
    """Runs the stages of a recipe on a tree."""

    last_part = "leaves"

    def __init__(self, fabric: Fabric, run: Run, recipe: Recipe, data: ImageData, model: Any, **options: Any):
        self.tree: ProtoTree = model
        # Log probabilities have their scale already.
        recipe = replace(recipe, model=replace(recipe.model, logit_scale=False))
        super().__init__(fabric, run, recipe, data, model, **options)

    @classmethod
    def build(cls, recipe: Recipe, data: ImageData) -> PatchNetwork:
        """The recipe's tree for the data's classes; raises for one on the unit sphere."""
        if recipe.model.activation == "unit":
            raise ProtoPFaithError(
                "On the unit sphere no distance is larger than 2, so that no node of a ProtoTree could send "
                "an image to the left with more than 86%; set model.activation=sigmoid, or start from the "
                "recipe cub_prototree."
            )
        depth = recipe.tree.depth or usual_depth(len(data.classes))
        return cls.construct(FAMILIES[recipe.model.family], recipe, data, depth, **own_options(recipe))

    @classmethod
    def stages_of(cls, schedule: ScheduleRecipe, images: int) -> list[Stage]:
        """A tree is projected once: the joint stages of all cycles are one.

        >>> [(stage.name, stage.epochs) for stage in TreeTrainer.stages_of(ScheduleRecipe(), 100)]
        [('warmup', 10), ('joint', 30), ('classifier', 10)]
        """
        joint = replace(schedule.joint, epochs=schedule.joint.epochs * schedule.cycles)
        return make_stages(replace(schedule, cycles=1, joint=joint), images)

    @classmethod
    def pruned(
        cls, model: Any, drop: Sequence[int] | None, tolerance: float | None, leaves: float | None
    ) -> tuple[PatchNetwork, tuple[int, ...]]:
        """A copy without leaves that are hardly above chance, and the nodes that went with them."""
        if leaves is None or drop is not None or tolerance is not None:
            raise ProtoPFaithError(
                "A ProtoTree is pruned by its leaves, not by its prototypes; say how much above chance those "
                "that stay must be, as in --leaves 0.1."
            )
        return prune_tree(model, leaves)

    def scheduler(self, optimizer: Optimizer, stage: Stage, iterations: int) -> LRScheduler:
        """Milestones halve the rate of the joint stage."""
        if stage.name != "joint":
            return super().scheduler(optimizer, stage, iterations)
        milestones = sorted({max(1, round(share * iterations)) for share in self.recipe.tree.milestones})
        return MultiStepLR(optimizer, milestones, gamma=0.5)

    def start_prototypes(self) -> None:
        """Prototypes start on patches. Where the plain classifier knows which classes are alike, on those of
        classes to their right, and leaves on their classes; else on patches of all classes in turn."""
        tree = self.tree
        if not self.recipe.schedule.pretraining.epochs:
            self._take_patches(torch.arange(len(tree.prototypes)) % len(tree.class_names))
            return
        vectors = self.fabric.broadcast(self.head.weight.detach())
        split = split_classes(vectors, tree.branches)
        owners = typical_classes(vectors, split)
        start_leaves(tree, split)
        for _ in range(ROUNDS):
            self._take_patches(owners)
            scale_features(tree, self._median_distance())
        self._take_patches(owners)

    def _take_patches(self, owners: Tensor) -> None:
        """Puts prototypes onto patches of training images of the classes `owners` (P)."""
        head = self.head if self.recipe.model.initialization == "evidence" else None
        generator = torch.Generator().manual_seed(seed_for(self.recipe.seed, "patches"))
        images, preprocessing = self.images.train, self.data.preprocessing
        prototypes = patch_prototypes(self.tree, images, preprocessing, generator, head, owners=owners)
        self.tree.prototypes.data.copy_(self.fabric.broadcast(prototypes))

    @torch.no_grad()
    def _median_distance(self) -> float:
        """The median over all nodes and some training images."""
        step = max(1, len(self.images.train) // SOME)
        chosen = torch.arange(0, len(self.images.train), step)
        training = self.tree.training
        self.tree.eval()
        found = [
            self.tree.distances(self.data.preprocessing.normalize(pixels)).sqrt().flatten()
            for pixels, _ in self.images.train.batches(list(chosen.split(64)))
        ]
        self.tree.train(training)
        return float(self.fabric.broadcast(torch.cat(found).median()))

    def project_prototypes(self) -> None:
        """Leaves near chance go first."""
        tree, before = self.tree, prototype_accuracy(self.tree, self.images)
        gone = tree.prune_leaves(self.recipe.tree.prune)
        if gone:
            self.progress.say(f"{gone} of {len(tree.leaves)} leaves are near chance and go.")
        self._project()
        for sentence in signs_of_fall(before, prototype_accuracy(tree, self.images)):
            self.progress.say(sentence)

    def last_parameters(self) -> list[nn.Parameter]:
        """Leaves, which learn without gradients: they stand where the optimizer wants something to hold."""
        return [self.tree.leaves]

    def objective(self, stage: Stage) -> nn.Module:
        if stage.name == "pretraining":
            smoothing = self.recipe.schedule.pretraining.label_smoothing
            return PlainObjective(self.tree.encoder, self.head, smoothing, self.class_weights)
        if stage.name == "classifier":
            return LeafObjective(self.tree, self.class_weights)
        head = self.head if self.recipe.costs.companion else None
        return TreeObjective(self.tree, self.recipe.costs, head, self.class_weights)

    def after_step(self, result: dict[str, Tensor], labels: Tensor, batches: int) -> None:
        if "ways" in result:
            self._learn_leaves(result, labels, batches)

    @torch.no_grad()
    def _learn_leaves(self, result: dict[str, Tensor], labels: Tensor, batches: int) -> None:
        """Forgets as much of the leaves' counts as one batch of an epoch holds, and adds this batch's."""
        log_distributions = self.tree.log_distributions()
        counts = leaf_counts(result["ways"], log_distributions, result["logits"], labels, self.class_weights)
        self.tree.leaves.mul_(1 - 1 / batches).add_(self.images.sum(counts))

    def train_epoch(
        self,
        objective: nn.Module,
        optimizer: Optimizer,
        scheduler: LRScheduler,
        stream: BatchStream,
        order: list[Tensor],
    ) -> dict[str, Tensor]:
        if isinstance(getattr(objective, "module", objective), LeafObjective):
            return self._train_leaves(objective, stream, order)
        return super().train_epoch(objective, optimizer, scheduler, stream, order)

    @torch.no_grad()
    def _train_leaves(
        self, objective: nn.Module, stream: BatchStream, order: Sequence[Tensor]
    ) -> dict[str, Tensor]:
        """One pass over distances; nothing has a gradient."""
        classes, device = len(self.data.classes), self.fabric.device
        sums = {"confusion": torch.zeros(classes, classes, dtype=torch.long, device=device)}
        for inputs, labels in stream(list(order)):
            result = objective(inputs, labels)
            self._learn_leaves(result, labels, len(order))
            for name in ("loss", "cross_entropy"):
                sums[name] = sums.get(name, 0) + result[name] / len(order)
            add_to_confusion(sums["confusion"], result["logits"], labels)
            self.progress.advance()
        return sums

    def measure_epoch(self, stage: Stage, epoch: int, sums: dict[str, Tensor], **more: Any) -> EpochMetrics:
        """Of the tree as it is saved."""
        found = super().measure_epoch(stage, epoch, sums, **more)
        if not stage.projected:
            return found
        tree = self.tree.finished()
        distinct = distinct_prototypes(tree).distinct
        return replace(found, distinct_prototypes=distinct, prototypes=len(tree.prototypes))

"""The stages of training as data, and the optimizer and learning rates of each.

The paper (appendix A.2): a warm-up of Z and Q for ten epochs, then cycles of five epochs of V, Z and Q and
ten epochs of F, each with two triangles of the learning rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from torch import nn
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import ConstantLR, CyclicLR, LinearLR, LRScheduler, OneCycleLR

from protopfaith.training.blocks import depth_shares
from protopfaith.training.recipe import Recipe
from protopfaith.training.recipe_sections import ScheduleRecipe

StageName = Literal["pretraining", "warmup", "joint", "classifier"]


@dataclass(frozen=True)
class Stage:
    """Some epochs that train the same parts."""

    name: StageName
    epochs: int
    cycle: int = 0  # of joint and classifier stages, from 1
    first_epoch: int = 0  # counted over the whole run

    @property
    def projected(self) -> bool:
        """Whether prototypes are latent vectors of training images throughout this stage."""
        return self.name == "classifier"


TRAINED_PARTS: dict[StageName, tuple[str, ...]] = {
    "pretraining": ("encoder", "head"),
    "warmup": ("features", "prototypes"),
    "joint": ("encoder", "features", "prototypes"),
    "classifier": ("classifier",),
}
# Not prototypes: weight decay would pull them away from real latent vectors.
DECAYED_PARTS = ("encoder", "features", "head")


MULTIPLIER_OF = {"scale": "features"}  # parts whose rate is another's


def trained_parts(stage: Stage, recipe: Recipe) -> tuple[str, ...]:
    """What `stage` trains; a companion, the head of the plain classifier, goes on learning with V."""
    parts = TRAINED_PARTS[stage.name]
    if stage.name == "joint" and recipe.costs.companion:
        parts = (*parts, "head")
    if stage.name in ("warmup", "joint") and recipe.model.logit_scale:
        parts = (*parts, "scale")
    return parts


FEWEST = 0.25  # of the epochs, however many images there are


def scaled_epochs(epochs: int, images: int | None, meant_for: int | None) -> int:
    """Fewer epochs for more images than they are meant for, by the square root: between equal epochs and
    equal iterations. With fewer images there are no more epochs, for they would only be learned by heart.

    >>> scaled_epochs(10, 500, meant_for=5_000), scaled_epochs(10, 20_000, meant_for=5_000)
    (10, 5)
    """
    if not epochs or images is None or meant_for is None:
        return epochs
    factor = min(max(math.sqrt(meant_for / max(images, 1)), FEWEST), 1.0)
    return max(round(epochs * factor), 1)


def make_stages(schedule: ScheduleRecipe, images: int | None = None) -> list[Stage]:
    """Every stage of a run, in order; `images` is the number of training images, for schedules that depend
    on it.

    >>> [stage.name for stage in make_stages(ScheduleRecipe(cycles=1))]
    ['warmup', 'joint', 'classifier']
    """
    wanted: list[tuple[StageName, int, int]] = [
        ("pretraining", schedule.pretraining.epochs, 0),
        ("warmup", schedule.warmup.epochs, 0),
    ]
    for cycle in range(1, schedule.cycles + 1):
        wanted += [("joint", schedule.joint.epochs, cycle), ("classifier", schedule.classifier.epochs, cycle)]
    stages, first_epoch = [], 0
    for name, meant, cycle in wanted:
        epochs = scaled_epochs(meant, images, schedule.images)
        if epochs:
            stages.append(Stage(name, epochs, cycle, first_epoch))
            first_epoch += epochs
    return stages


LEAST_MOVED = 0.1
F_STEPS = 1_000
"""In which F gets where it should at its own rate; with fewer it has a higher one."""
MOST_HURRIED = 10.0
LOST = 0.5  # of the rate, for each cycle in a row that has brought nothing better


def make_optimizer(
    parts: dict[str, list[nn.Parameter]],
    stage: Stage,
    recipe: Recipe,
    *,
    blocks: list[list[nn.Parameter]] | None = None,
    lost_cycles: int = 0,
    moved: float = 1.0,
    iterations: int | None = None,
) -> AdamW:
    """AdamW with a group of parameters for each part that `stage` trains; weight decay on V and Z only.

    Where the recipe wants V's first `blocks` to learn more slowly, each block is a group of its own. `moved`
    is how far validation images let V move in the plain classifier: prototypes move it as much more slowly.
    `iterations` are those of the whole stage: a schedule that depends on the number of images has a higher
    rate for F where they are few, for F would hardly move in them.
    """
    pretraining = recipe.schedule.pretraining
    plain = stage.name == "pretraining"
    rate = pretraining.learning_rate if plain else recipe.optimization.learning_rate
    if recipe.schedule.lost_cycle == "go_back":
        rate *= LOST**lost_cycles
    if stage.name == "classifier" and recipe.schedule.images is not None and iterations:
        rate *= min(max(F_STEPS / iterations, 1.0), MOST_HURRIED)
    decay = pretraining.weight_decay if plain else recipe.optimization.weight_decay
    trained, groups = trained_parts(stage, recipe), []
    for part in trained:
        factor = 1.0 if plain else getattr(recipe.optimization.multipliers, MULTIPLIER_OF.get(part, part))
        if part == "encoder" and not plain:
            factor *= max(moved, LEAST_MOVED)
        rows = [parts[part]]
        if part == "encoder" and blocks is not None and recipe.optimization.layer_decay < 1:
            rows = blocks
        for row, share in zip(rows, depth_shares(len(rows), recipe.optimization.layer_decay), strict=True):
            groups.append(
                {
                    "params": row,
                    "lr": rate * factor * share,
                    "weight_decay": decay if part in DECAYED_PARTS else 0.0,
                    "part": part,
                }
            )
    # One kernel for all parameters where there is one. It also unscales the gradients of 16-mixed, so they
    # cannot be clipped before.
    clipped = recipe.optimization.clip is not None and recipe.compute.precision == "16-mixed"
    on_gpu = any(row.is_cuda for part in trained for row in parts[part][:1])  # an encoder may have none
    return AdamW(groups, fused=on_gpu and not clipped)


def make_scheduler(optimizer: Optimizer, stage: Stage, recipe: Recipe, iterations: int) -> LRScheduler:
    """Learning rates over the `iterations` of a whole stage; step it after every one of them.

    Each group's own rate (the learning rate times the part's multiplier) is the highest.
    """
    schedule = recipe.schedule
    highest = [float(group["lr"]) for group in optimizer.param_groups]
    if stage.name == "pretraining":
        if schedule.pretraining.rate == "constant" or iterations < 4:  # OneCycleLR needs room to turn
            return ConstantLR(optimizer, factor=1.0, total_iters=1)
        return OneCycleLR(optimizer, max_lr=highest, total_steps=iterations + 1, cycle_momentum=False)
    if stage.name == "warmup":
        warmup = schedule.warmup
        return LinearLR(optimizer, warmup.start, warmup.end, total_iters=max(iterations - 1, 1))
    cyclic = schedule.joint if stage.name == "joint" else schedule.classifier
    return CyclicLR(
        optimizer,
        base_lr=[cyclic.base * rate for rate in highest],
        max_lr=highest,
        # Up and down take the same time. torch's type says int; any positive number will do.
        step_size_up=max(iterations / (2 * cyclic.rate_cycles), 1e-9),  # type: ignore[arg-type]
        cycle_momentum=False,
    )

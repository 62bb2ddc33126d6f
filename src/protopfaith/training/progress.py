"""What a person sees while a network trains."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import torch

from protopfaith.data import ImageData
from protopfaith.progress import Bar
from protopfaith.training.metrics import EpochMetrics
from protopfaith.training.schedule import Stage

if TYPE_CHECKING:
    from rich.console import Console

logger = logging.getLogger("protopfaith")
TITLES = {
    "pretraining": "plain classifier",
    "warmup": "warm-up (Z, Q)",
    "joint": "joint (V, Z, Q)",
    "classifier": "classifier (F)",
}


class TrainingProgress:
    """A bar over all iterations with stage, losses, balanced accuracy and distinct prototypes, and a line for
    every finished stage."""

    def __init__(self, shown: bool, iterations: int, console: Console | None = None, *, last_part: str = "F"):
        self.bar, self.iterations, self.shown = Bar(shown, console), iterations, shown
        self.last_part = last_part

    def __enter__(self) -> TrainingProgress:
        self.bar.__enter__()
        return self

    def __exit__(self, *end: object) -> None:
        self.bar.__exit__(*end)

    def begin(self, done: int = 0) -> None:
        """Starts at the iterations that an interrupted run has done already."""
        self.bar.begin("", self.iterations, done)

    def advance(self) -> None:
        """One iteration more."""
        self.bar.advance()

    def stage(self, stage: Stage) -> None:
        """A stage begins, or goes on."""
        self.bar.update(title(stage, self.last_part))

    def say(self, sentence: str) -> None:
        """A sentence that stays."""
        if self.shown:
            self.bar.say(sentence)
        else:
            logger.info(sentence)

    def epoch(self, stage: Stage, metrics: EpochMetrics) -> None:
        """An epoch is over."""
        self.bar.update(note=describe(metrics))
        if metrics.stage_epoch + 1 == stage.epochs:
            self.bar.say(
                f"{title(stage, self.last_part):<24} epoch {metrics.epoch + 1:>4}  {describe(metrics)}"
            )


def describe_data(data: ImageData) -> str:
    """What a network is trained on, so that a wrong folder is seen before the work.

    >>> from protopfaith.data import load_data
    >>> describe_data(load_data("birds", size=16, train=20, validation=8, test=16))
    '20 images of 8 classes (2 to 3 of each) to train on, 8 to validate, 16 to test.'
    """
    sizes = f"{len(data.validation)} to validate, {len(data.test)} to test."
    if data.outcome == "several":
        return f"{len(data.train)} images with {len(data.classes)} findings to train on, {sizes}"
    counts = torch.bincount(data.train.labels, minlength=len(data.classes))
    least, most = int(counts.min()), int(counts.max())
    each = f"{least}" if least == most else f"{least} to {most}"
    return f"{len(data.train)} images of {len(data.classes)} classes ({each} of each) to train on, {sizes}"


def title(stage: Stage, last_part: str = "F") -> str:
    """A stage's name as people read it, with its cycle; `last_part` is what learns after projection."""
    cycle = f"cycle {stage.cycle} " if stage.cycle else ""
    own = stage.name == "classifier" and last_part != "F"
    return f"{cycle}{last_part if own else TITLES[stage.name]}"


def describe(metrics: EpochMetrics) -> str:
    """The numbers of an epoch, in one line."""
    parts = [f"loss {metrics.loss:.3f}"]
    if metrics.cluster is not None and metrics.separation is not None:
        parts.append(f"cluster {metrics.cluster:.3f} separation {metrics.separation:.3f}")
    accuracy, name = metrics.validation_balanced_accuracy, "validation"
    if accuracy is None:
        accuracy, name = metrics.train_balanced_accuracy, "training"
    parts.append(f"balanced accuracy {accuracy:.3f} ({name})")
    if metrics.distinct_prototypes is not None:
        parts.append(f"{metrics.distinct_prototypes} of {metrics.prototypes} prototypes distinct")
    return ", ".join(parts)

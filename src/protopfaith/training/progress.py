"""What a person sees while a network trains."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

from protopfaith.training.metrics import EpochMetrics
from protopfaith.training.schedule import Stage

TITLES = {
    "pretraining": "plain classifier",
    "warmup": "warm-up (Z, Q)",
    "joint": "joint (V, Z, Q)",
    "classifier": "classifier (F)",
}


class TrainingProgress:
    """A bar over all iterations with stage, losses, balanced accuracy and distinct prototypes, and a line for
    every finished stage."""

    def __init__(self, enabled: bool, iterations: int, done: int = 0, console: Console | None = None):
        self.console = console or Console(stderr=True)
        self.enabled = enabled
        # In a narrow terminal the numbers wrap; bar and times stay whole.
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=12, table_column=Column(no_wrap=True)),
            TimeElapsedColumn(table_column=Column(no_wrap=True)),
            TimeRemainingColumn(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[numbers]}", table_column=Column(no_wrap=False)),
            console=self.console,
            disable=not enabled or not self.console.is_terminal,
        )
        self.task = self.progress.add_task("", total=iterations, completed=done, numbers="")

    def __enter__(self) -> TrainingProgress:
        self.progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.__exit__(kind, error, trace)

    def advance(self, iterations: int = 1) -> None:
        self.progress.advance(self.task, iterations)

    def stage(self, stage: Stage) -> None:
        self.progress.update(self.task, description=title(stage))

    def epoch(self, stage: Stage, metrics: EpochMetrics) -> None:
        self.progress.update(self.task, numbers=describe(metrics))
        if self.enabled and metrics.stage_epoch + 1 == stage.epochs:
            line = f"{title(stage):<24} epoch {metrics.epoch + 1:>4}  {describe(metrics)}"
            self.console.print(line, highlight=False, soft_wrap=True)


def title(stage: Stage) -> str:
    cycle = f"cycle {stage.cycle} " if stage.cycle else ""
    return f"{cycle}{TITLES[stage.name]}"


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

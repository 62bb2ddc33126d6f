"""Balanced accuracy of a model on a set, and the table of epochs (`metrics.csv`) that pandas reads."""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import torch
from torch import Tensor

from protopfaith.arguments import whole_number
from protopfaith.data import ImageSet, Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import read_plain_text, reason
from protopfaith.network import PatchNetwork
from protopfaith.writing import atomic

LONGEST = 12
"""Digits of a whole number in `metrics.csv`: no training has as many epochs or prototypes."""
logger = logging.getLogger("protopfaith")


def empty_confusion(labels: Tensor, classes: int, device: torch.device | str = "cpu") -> Tensor:
    """Zeros to count in: classes x classes for labels (N,), findings x 2 x 2 for those of findings (N, C)."""
    shape = (classes, 2, 2) if labels.dim() == 2 else (classes, classes)
    return torch.zeros(shape, dtype=torch.long, device=device)


def add_to_confusion(confusion: Tensor, logits: Tensor, labels: Tensor) -> None:
    """Counts predictions in place: `confusion[label, prediction]`, or `confusion[finding, label, prediction]`
    where a finding is predicted if its logit is positive. Never waits for the device."""
    if labels.dim() == 2:
        for label in (0, 1):
            for prediction in (0, 1):
                counted = (labels == label) & ((logits > 0) == bool(prediction))
                confusion[:, label, prediction] += counted.sum(0)
        return
    ones = torch.ones(len(labels), dtype=confusion.dtype, device=confusion.device)
    confusion.index_put_((labels, logits.argmax(dim=1)), ones, accumulate=True)


def balanced_accuracy(confusion: Tensor) -> float:
    """Mean over the classes that occur of the share of their images that is recognized; of several findings
    the mean of theirs.

    >>> balanced_accuracy(torch.tensor([[3, 1], [0, 2]]))
    0.875
    """
    if confusion.dim() == 3:
        return float(torch.tensor([balanced_accuracy(one) for one in confusion]).nanmean())
    totals = confusion.sum(dim=1)
    occurs = totals > 0
    if not occurs.any():
        return float("nan")
    return float((confusion.diagonal()[occurs].double() / totals[occurs]).mean())


def accuracy_of(logits: Tensor, labels: Tensor) -> float:
    """The balanced accuracy of logits (N, C) for labels (N,), or (N, C) of findings.

    >>> accuracy_of(torch.tensor([[2.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1]))
    0.5
    """
    confusion = empty_confusion(labels, logits.shape[1], logits.device)
    add_to_confusion(confusion, logits, labels)
    return balanced_accuracy(confusion)


@torch.no_grad()
def set_logits(
    model: PatchNetwork, images: ImageSet, preprocessing: Preprocessing, batch_size: int = 64
) -> Tensor:
    """The logits of every image of a set (images x classes), on the CPU."""
    whole_number(batch_size, "The batch size", least=1)
    device = model.prototypes.device
    batches = torch.arange(len(images)).split(min(batch_size, len(images)))
    pixels = (images.uint8(batch.tolist()).to(device) for batch in batches)
    return torch.cat([model(preprocessing.normalize(batch)).cpu() for batch in pixels])


def set_balanced_accuracy(model: PatchNetwork, images: ImageSet, preprocessing: Preprocessing) -> float:
    """Of `model` (in evaluation mode) on a set; not-a-number for an empty one."""
    if not len(images):
        return float("nan")
    return accuracy_of(set_logits(model, images, preprocessing), images.labels)


@dataclass(frozen=True)
class EpochMetrics:
    """One row of `metrics.csv`; empty where something was not measured."""

    epoch: int  # from 0, over the whole run
    stage: str
    cycle: int
    stage_epoch: int
    learning_rate: float  # of the last iteration; the highest of all parts
    loss: float
    cross_entropy: float
    cluster: float | None
    separation: float | None
    train_balanced_accuracy: float
    validation_balanced_accuracy: float | None
    projected: bool  # whether prototypes were latent vectors of training images: only these epochs compete
    distinct_prototypes: int | None
    prototypes: int
    seconds: float


def is_row(row: Sequence[str]) -> bool:
    """Whether texts can be the beginning of a row of `metrics.csv`: numbers where numbers belong.

    >>> is_row(["0", "warmup", "1", "0", "0.01"]), is_row(["0", "warmup", "one"])
    (True, False)
    """
    return all(_fits(text, str(field.type)) for text, field in zip(row, fields(EpochMetrics), strict=False))


def _fits(text: str, kind: str) -> bool:
    """Whether a text can be a value of a field whose type is `kind`, such as "float | None"."""
    first = kind.split(maxsplit=1)[0]
    if not text or first == "bool":
        return text in ("True", "False") if first == "bool" else kind.endswith("None")
    if first == "int":
        return text.isascii() and text.isdecimal() and len(text) < LONGEST
    try:
        return first == "str" or isinstance(float(text), float)
    except ValueError:
        return False


class MetricsFile:
    """Appends rows; on resume, drops those of epochs that will be run again."""

    def __init__(self, path: Path, first_epoch: int = 0):
        self.path = path
        rows = self._complete_rows(first_epoch) if path.exists() else []
        if len(rows) < first_epoch:
            logger.warning(
                "%s lacks %d of %d epochs, whose rows are damaged or missing; training goes on without them.",
                path,
                first_epoch - len(rows),
                first_epoch,
            )
        with atomic(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([field.name for field in fields(EpochMetrics)])
            writer.writerows(rows)

    def _complete_rows(self, first_epoch: int) -> list[list[str]]:
        text = read_plain_text(self.path, "the run's own metrics back, or move it away, then resume the run")
        try:
            rows = list(csv.reader(io.StringIO(text, newline="")))
        except csv.Error as error:
            raise ProtoPFaithError(
                f"{self.path} cannot be read ({reason(error)}); move it away, then resume the run."
            ) from error
        names = [field.name for field in fields(EpochMetrics)]
        header = rows[0] if rows else names
        if header != names[: len(header)]:
            raise ProtoPFaithError(f"{self.path} has other columns; move it away, then resume the run.")
        later = [""] * (len(names) - len(header))  # columns that an older version did not have
        whole = (row + later for row in rows[1:] if len(row) == len(header) and is_row(row))
        by_epoch = {int(row[0]): row for row in whole}  # of two rows of an epoch the later one
        return [by_epoch[epoch] for epoch in sorted(by_epoch) if epoch < first_epoch]

    def append(self, metrics: EpochMetrics) -> None:
        try:
            with self.path.open("a", newline="") as file:
                csv.writer(file, lineterminator="\n").writerow(asdict(metrics).values())
        except OSError as error:
            raise ProtoPFaithError(
                f"Could not write {self.path} ({error.strerror or error}); free some space, then resume the "
                "run."
            ) from error


class EpochLog:
    """`metrics.csv` and TensorBoard."""

    def __init__(self, folder: Path, first_epoch: int):
        from torch.utils.tensorboard import SummaryWriter

        self.file = MetricsFile(folder / "metrics.csv", first_epoch)
        self.writer = SummaryWriter(str(folder / "tensorboard"), purge_step=first_epoch)

    def write(self, metrics: EpochMetrics) -> None:
        self.file.append(metrics)
        for name, value in asdict(metrics).items():
            if isinstance(value, float) or (name == "distinct_prototypes" and value is not None):
                self.writer.add_scalar(name, value, metrics.epoch)

    def close(self) -> None:
        self.writer.close()

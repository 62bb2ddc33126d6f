"""How well a network classifies: balanced accuracy, sensitivity, specificity, AUROC, confusion matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from protopfaith.arguments import instance
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.metrics.calibration import Calibration, calibration
from protopfaith.training.certainty import balanced_interval

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class Classification:
    """What came out for labeled images. A class without images is not-a-number and no part of means.

    Args:
        class_names: in the order of the logits
        confusion: images by true class (row) and predicted class (column)
        sensitivity: of the images of a class, the fraction that is recognized as such
        specificity: of the images of other classes, the fraction that is not taken for this one
        auroc_per_class: of this class against all others
        distinct_prototypes: of each class, where a prototype network was judged
        calibration: whether the network is as sure as it is right
    """

    class_names: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    sensitivity: tuple[float, ...]
    specificity: tuple[float, ...]
    auroc_per_class: tuple[float, ...]
    distinct_prototypes: tuple[int, ...] | None = None
    calibration: Calibration | None = None

    def __repr__(self) -> str:
        return (
            f"Classification({self.images} images, {len(self.class_names)} classes, "
            f"balanced accuracy {self.balanced_accuracy:.3f})"
        )

    @property
    def images(self) -> int:
        """How many were judged."""
        return sum(map(sum, self.confusion))

    @property
    def accuracy(self) -> float:
        return sum(row[index] for index, row in enumerate(self.confusion)) / self.images

    @property
    def balanced_accuracy(self) -> float:
        """The mean sensitivity."""
        return _mean(self.sensitivity)

    @property
    def balanced_interval(self) -> tuple[float, float]:
        """The 95% interval of the balanced accuracy, for images that are independent of each other."""
        return balanced_interval(self.balanced_accuracy, [sum(row) for row in self.confusion])

    @property
    def auroc(self) -> float:
        """The mean over classes; for two classes both are the same number, the usual binary AUROC."""
        return _mean(self.auroc_per_class)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts, for JSON; not-a-number becomes None, as JSON has none."""
        names = self.class_names
        counts = {}
        if self.distinct_prototypes is not None:
            counts["distinct_prototypes"] = dict(zip(names, self.distinct_prototypes, strict=True))
        return {
            "images": self.images,
            "accuracy": self.accuracy,
            "balanced_accuracy": self.balanced_accuracy,
            "balanced_accuracy_interval": list(self.balanced_interval),
            "auroc": _or_none(self.auroc),
            "sensitivity": dict(zip(names, map(_or_none, self.sensitivity), strict=True)),
            "specificity": dict(zip(names, map(_or_none, self.specificity), strict=True)),
            "auroc_per_class": dict(zip(names, map(_or_none, self.auroc_per_class), strict=True)),
            "class_names": list(names),
            "confusion": [list(row) for row in self.confusion],
            "calibration": None if self.calibration is None else asdict(self.calibration),
            **counts,
        }

    def table(self) -> Table:
        """One line for each class and one for all, for `rich.print`."""
        from rich.markup import escape
        from rich.table import Table

        low, high = self.balanced_interval
        between = f"(95% interval {low:.3f} to {high:.3f})"
        table = Table(title=f"{self.images} images, balanced accuracy {self.balanced_accuracy:.3f} {between}")
        table.add_column("class", overflow="fold", min_width=min(max(map(len, self.class_names)), 40))
        headings = ["images", "sensitivity", "specificity", "AUROC"]
        headings += [] if self.distinct_prototypes is None else ["distinct prototypes"]
        for name in headings:
            table.add_column(name, justify="right")
        columns = (self.sensitivity, self.specificity, self.auroc_per_class)
        for index, name in enumerate(self.class_names):
            values = [_text(column[index]) for column in columns]
            if self.distinct_prototypes is not None:
                values.append(str(self.distinct_prototypes[index]))
            table.add_row(escape(name), str(sum(self.confusion[index])), *values)
        table.add_section()
        table.add_row("mean", str(self.images), *(_text(_mean(column)) for column in columns), style="bold")
        return table


def classification(
    logits: Tensor, labels: Tensor, classes: int | Sequence[str], temperature: float | None = None
) -> Classification:
    """Judges `logits` (N, C) against `labels` (N); their `temperature` matters for calibration alone.

    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> classification(logits, torch.tensor([0, 1, 1]), ["cat", "dog"]).balanced_accuracy
    0.75
    """
    from torchmetrics.functional.classification import multiclass_confusion_matrix

    names = tuple(map(str, range(classes))) if isinstance(classes, int) else tuple(classes)
    for tensor in (logits, labels):
        instance(tensor, Tensor, "Logits and labels", "tensors")
    logits, labels = logits.detach().cpu().double(), labels.detach().cpu().long()
    check_classification(logits, labels, len(names))
    confusion = multiclass_confusion_matrix(logits.argmax(1), labels, num_classes=len(names))
    right, of_class = confusion.diagonal().double(), confusion.sum(1).double()
    wrongly = confusion.sum(0).double() - right
    others = len(labels) - of_class
    return Classification(
        class_names=names,
        confusion=tuple(map(tuple, confusion.tolist())),
        sensitivity=tuple((right / of_class).tolist()),
        specificity=tuple(((others - wrongly) / others).tolist()),
        auroc_per_class=tuple(one_against_all_auroc(logits, labels)),
        calibration=calibration(logits, labels, temperature),
    )


def one_against_all_auroc(logits: Tensor, labels: Tensor) -> list[float]:
    """AUROC of every class's probability; not-a-number for a class that has all images or none.

    Only the order of scores counts, and probabilities near one are all rounded to one: the ranks of log-odds,
    logit minus logsumexp of the other logits, keep the order.
    """
    from torchmetrics.functional.classification import binary_auroc

    values = []
    odds = log_odds(logits)
    for index in range(logits.shape[1]):
        positive = (labels == index).long()
        if not 0 < int(positive.sum()) < len(labels):
            values.append(math.nan)
            continue
        ranks = odds[:, index].unique(return_inverse=True)[1].double() / len(labels)
        values.append(float(binary_auroc(ranks, positive)))
    return values


def log_odds(logits: Tensor) -> Tensor:
    """Each logit minus the logsumexp of the others, (N, C): in the order of probabilities, without rounding.

    >>> log_odds(torch.tensor([[3.0, 1.0]]))
    tensor([[ 2., -2.]])
    """
    columns = [
        logits[:, index] - torch.cat([logits[:, :index], logits[:, index + 1 :]], dim=1).logsumexp(1)
        for index in range(logits.shape[1])
    ]
    return torch.stack(columns, dim=1)


def check_classification(logits: Tensor, labels: Tensor, classes: int) -> None:
    """Raises unless there are finite logits of all classes and a label for each image."""
    if logits.dim() != 2 or logits.shape != (len(labels), classes) or not len(labels):
        raise ProtoPFaithError(
            f"Classification needs logits of shape images x {classes} classes and as many labels, at "
            f"least one, but got {tuple(logits.shape)} and {len(labels)} labels."
        )
    if labels.min() < 0 or labels.max() >= classes:
        raise ProtoPFaithError(
            f"Labels go from 0 to {classes - 1} for {classes} classes, but got {int(labels.min())} to "
            f"{int(labels.max())}."
        )
    broken = int((~logits.isfinite().all(1)).sum())
    if broken:
        raise ProtoPFaithError(
            f"The logits of {broken} of {len(logits)} images are not finite and cannot be judged; check that "
            "the network's weights and its images are finite."
        )


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _text(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"

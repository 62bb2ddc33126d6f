"""What a network does on images from elsewhere: the scores, and the files that keep them."""

from __future__ import annotations

import json
import math
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protopfaith.anonymous import public_names, safe_cell
from protopfaith.csvfile import write_rows
from protopfaith.evaluation.metrics.bootstrap import SCORES, Interval
from protopfaith.evaluation.metrics.classification import Classification
from protopfaith.writing import atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

INTERNAL, EXTERNAL, DIFFERENCE = "internal test set", "external", "difference"


@dataclass(frozen=True)
class Row:
    """One set of images: the external ones, the run's own test images, a subgroup, or a difference.

    Args:
        name: of the set
        images: how many
        groups: patients among them, or images that stand alone
        scores: accuracy, balanced accuracy and AUROC with their intervals
    """

    name: str
    images: int
    groups: int
    scores: dict[str, Interval]


@dataclass(frozen=True)
class Judged:
    """One external image: its class, the one that it was taken for, or why there is none."""

    path: str
    label: str
    group: str
    predicted: str = ""
    probability: float = math.nan
    error: str = ""


@dataclass(frozen=True, eq=False)
class ExternalEvaluation:
    """A network on images from elsewhere.

    Args:
        name: of these images
        result: the classification of those that could be judged
        rows: external, internal and their difference, then every subgroup
        images: what became of each image
        notes: sentences for people: classes that are not there, images that were left out, ...
        resamples: how many sets were drawn for the intervals

    >>> import torch
    >>> from protopfaith.evaluation.metrics.classification import classification
    >>> result = classification(torch.eye(2), torch.tensor([0, 1]), ["cat", "dog"])
    >>> row = Row("external: clinic", 2, 2, {"balanced_accuracy": Interval(1.0, 0.16, 1.0)})
    >>> ExternalEvaluation("clinic", result, (row,), (), (), 1000)
    ExternalEvaluation('clinic', 1.000 (0.160 to 1.000))
    """

    name: str
    result: Classification
    rows: tuple[Row, ...]
    images: tuple[Judged, ...]
    notes: tuple[str, ...]
    resamples: int

    def __repr__(self) -> str:
        return f"ExternalEvaluation({self.name!r}, {self.rows[0].scores['balanced_accuracy']})"

    @property
    def problems(self) -> list[str]:
        """Why images could not be judged, a sentence each."""
        return [image.error for image in self.images if image.error]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts, for JSON; not-a-number becomes None."""
        rows = [
            {**asdict(row), "scores": {name: interval.to_dict() for name, interval in row.scores.items()}}
            for row in self.rows
        ]
        return {
            **self.result.to_dict(),
            "rows": rows,
            "resamples": self.resamples,
            "notes": list(self.notes),
            "not_judged": len(self.problems),
        }

    def table(self) -> Table:
        """One line for each set, for `rich.print`."""
        from rich.markup import escape
        from rich.table import Table

        table = Table(title="95% intervals: percentiles of a bootstrap over groups")
        table.add_column("images from", overflow="fold")
        for heading in ("images", "groups", "accuracy", "balanced accuracy", "AUROC"):
            table.add_column(heading, justify="right")
        for row in self.rows:
            counts = ("", "") if row.name == DIFFERENCE else (f"{row.images:,}", f"{row.groups:,}")
            table.add_row(escape(row.name), *counts, *(str(row.scores[score]) for score in SCORES))
        return table

    def save(self, folder: Path | str) -> Path:
        """Writes numbers, a row for each image, and the pictures into a folder; returns the JSON file.

        Args:
            folder: where to write; made where it is not there
        """
        from protopfaith.evaluation.prediction import write_classification
        from protopfaith.show.external import comparison_figure

        folder, name = Path(folder), file_name(self.name)
        write_classification(folder, name, self.result)
        return write_external(folder / name, self.to_dict(), comparison_figure(self), self._image_rows())

    def _image_rows(self) -> list[list[object]]:
        rows: list[list[object]] = [["image", "class", "group", "predicted", "probability", "error"]]
        names = public_names([image.path for image in self.images])
        for name, image in zip(names, self.images, strict=True):
            probability = "" if math.isnan(image.probability) else image.probability
            texts = map(safe_cell, (name, image.label, image.group, image.predicted))
            rows.append([*texts, probability, safe_cell(image.error)])
        return rows


def write_external(place: Path, numbers: dict[str, Any], figure: Figure, rows: list[list[object]]) -> Path:
    """What results on external data leave, in files that begin alike: the numbers, whose file is returned, a
    comparison as a picture, and a table with a row for each image."""
    with atomic(place.with_name(f"{place.name}.json")) as partial:
        partial.write_text(json.dumps(numbers, indent=2))
    with atomic(place.with_name(f"{place.name}-compared.png")) as partial:
        figure.savefig(partial, format="png")
    write_rows(place.with_name(f"{place.name}-images.csv"), rows)
    return place.with_name(f"{place.name}.json")


def file_name(name: str) -> str:
    """What results on external data are called: never that of a split.

    >>> file_name("St. Mary's 2024")
    'external-St._Mary_s_2024'
    """
    return f"external-{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:60]}"

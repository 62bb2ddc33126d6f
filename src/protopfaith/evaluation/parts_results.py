"""Which parts of the object prototypes sit on: the scores, and the files that keep them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from protopfaith.anonymous import safe_cell
from protopfaith.csvfile import write_rows
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import read_json
from protopfaith.writing import atomic

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True)
class PrototypeParts:
    """One prototype by one explainer.

    Args:
        prototype: its number
        class_name: of its class
        part: the part that it sits on most often; empty for none
        frequency: the largest share of images in which one part is in its box
        consistent: whether that is often enough
        stability: the share of images in which noise changes nothing
    """

    prototype: int
    class_name: str
    part: str
    frequency: float
    consistent: bool
    stability: float


@dataclass(frozen=True, eq=False)
class PartScores:
    """Scores of one explainer's maps.

    Args:
        explainer: its name
        consistency: the share of prototypes that sit on one part throughout
        stability: the mean share of images in which noise changes nothing
        coverage: different parts that the prototypes of a class sit on, the mean over classes
        prototypes: each of them

    >>> PartScores("ours", 0.9, 0.8, 2.5, ())
    PartScores('ours', consistency=0.900, stability=0.800, coverage=2.50)
    """

    explainer: str
    consistency: float
    stability: float
    coverage: float
    prototypes: tuple[PrototypeParts, ...]

    def __repr__(self) -> str:
        return (
            f"PartScores({self.explainer!r}, consistency={self.consistency:.3f}, "
            f"stability={self.stability:.3f}, coverage={self.coverage:.2f})"
        )


@dataclass(frozen=True, eq=False)
class PartsEvaluation:
    """Which parts prototypes sit on.

    Args:
        scores: of each explainer
        classes: how many were judged
        images: how many were looked at
        parts: names of the parts
        settings: what was asked for
        places: for each explainer and image, where its maps peak, for pictures: (P, 2) as (x, y)
        shown: the images, as numbers in their set, in the order of `places`
        owners: the class, or the finding, whose prototypes were looked at in each

    >>> score = PartScores("ours", 0.9, 0.8, 2.5, ())
    >>> PartsEvaluation((score,), 8, 40, ("beak", "tail"), {}, {}, ()).to_dict()["scores"]["ours"]["coverage"]
    2.5
    """

    scores: tuple[PartScores, ...]
    classes: int
    images: int
    parts: tuple[str, ...]
    settings: dict[str, Any]
    places: dict[str, list[Tensor]]
    shown: tuple[int, ...]
    owners: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"PartsEvaluation({self.images} images of {self.classes} classes, {list(self.scores)})"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts, for JSON."""
        return {
            "scores": {
                one.explainer: {name: getattr(one, name) for name in ("consistency", "stability", "coverage")}
                for one in self.scores
            },
            "classes": self.classes,
            "images": self.images,
            "parts": list(self.parts),
            "settings": self.settings,
            "prototypes": {one.explainer: [asdict(row) for row in one.prototypes] for one in self.scores},
        }

    def table(self) -> Table:
        """One line for each explainer, for `rich.print`."""
        from rich.table import Table

        table = Table(title=f"{self.images} images of {self.classes} classes, {len(self.parts)} parts")
        for heading in ("maps", "prototypes", "consistency", "stability", "parts per class"):
            table.add_column(heading, justify="left" if heading == "maps" else "right")
        for one in self.scores:
            numbers = (f"{one.consistency:.3f}", f"{one.stability:.3f}", f"{one.coverage:.2f}")
            table.add_row(one.explainer, str(len(one.prototypes)), *numbers)
        return table

    def save(self, folder: Path | str) -> Path:
        """Writes `parts.json` and `parts.csv`, a row for each explainer and prototype; returns the first.

        Args:
            folder: where to write; made where it is not there
        """
        folder = Path(folder)
        with atomic(folder / "parts.json") as partial:
            partial.write_text(json.dumps(self.to_dict(), indent=2))
        rows: list[list[object]] = [
            ["maps", "prototype", "class", "part", "frequency", "consistent", "stability"]
        ]
        for one in self.scores:
            for row in one.prototypes:
                name, part = safe_cell(row.class_name), safe_cell(row.part)
                numbers = (round(row.frequency, 6), row.consistent, round(row.stability, 6))
                rows.append([one.explainer, row.prototype, name, part, *numbers])
        write_rows(folder / "parts.csv", rows)
        return folder / "parts.json"


def part_remarks(folder: Path | str, weights_sha256: str) -> dict[int, str]:
    """A sentence about each prototype, from the `parts.json` of a folder; none where there is no such file,
    or it is about other weights.

    Args:
        folder: where `PartsEvaluation.save` wrote
        weights_sha256: of the network
    """
    path = Path(folder) / "parts.json"
    if not path.is_file():
        return {}
    try:
        values = read_json(path, "the result of protopfaith parts")
        if values["settings"]["weights_sha256"] != weights_sha256:
            return {}
        name, rows = next(iter(values["prototypes"].items()))
        return {int(row["prototype"]): _remark(name, row) for row in rows}
    except (ProtoPFaithError, KeyError, TypeError, ValueError, StopIteration, AttributeError):
        return {}  # a result of ours that somebody changed: the page does without


def _remark(explainer: str, row: dict[str, Any]) -> str:
    often = f"{float(row['stability']):.0%} unchanged by noise"
    if not row["part"]:
        return f"In images of its class it is mostly on no part ({often}, by the maps of {explainer})."
    kept = "consistently" if row["consistent"] else "not consistently"
    return (
        f"In images of its class it is most often on the {row['part']}, {kept} so ({often}, by the maps of "
        f"{explainer})."
    )

"""The result: an image, the decision on it, and what it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from protopfaith.explanation.decomposition import Decomposition
from protopfaith.explanation.explainer import SourceSide
from protopfaith.explanation.regions import Agreement, RegionValues
from protopfaith.network import PrototypeSource


@dataclass(frozen=True, eq=False)
class PrototypeEvidence:
    """What one prototype has to do with the decision."""

    prototype: int
    class_index: int
    class_name: str
    distance: float
    similarity: float  # what F reads: -distance, or the log similarity
    weight: float  # in F, to the explained class (or difference of classes)
    paper_score: float  # the paper's Psi_k, with R over the classes' own prototypes
    score: float  # its share in the complete decomposition
    source: PrototypeSource | None
    duplicate_of: int | None  # a prototype of higher rank with the same vector
    duplicate_kind: str  # "", "identical" or "near"
    test: RegionValues
    activation: Tensor  # ProtoPNet's own map on the test image, (H, W)
    box: tuple[int, int, int, int]
    source_side: SourceSide | None


@dataclass(frozen=True, eq=False)
class SecondBaseline:
    """The class map with another baseline, and how far it agrees with the first."""

    baseline: str
    class_map: RegionValues
    class_agreement: Agreement
    prototype_agreement: dict[int, Agreement]


@dataclass(frozen=True, eq=False)
class Explanation:
    """An image, the decision on it, and what it rests on: everything a figure or a report shows."""

    name: str
    pixels: Tensor  # uint8, C x H x W, as the network sees it
    original: Tensor  # uint8, C x H0 x W0, before it was resized
    class_names: tuple[str, ...]
    probabilities: Tensor  # (C,)
    prediction: int
    target: int
    versus: int | None
    decomposition: Decomposition
    runner_up: Decomposition  # against the most probable other class; the same one if that was asked for
    evidence: tuple[PrototypeEvidence, ...]
    class_map: RegionValues
    prototype_values: Tensor  # (P, n): shares in all distances; NaN where not asked for (moment_path)
    method: str
    baseline: str
    evaluations: int
    precision: float
    precision_asked: float | None
    reached: bool
    second: SecondBaseline | None
    coarse: bool
    seconds: float
    network: dict[str, Any]
    settings: dict[str, Any]
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The question that is answered."""
        asked = f"Why {self.class_names[self.target]}"
        return f"{asked}?" if self.versus is None else f"{asked} and not {self.class_names[self.versus]}?"

    @property
    def original_size(self) -> tuple[int, int]:
        return self.original.shape[-2], self.original.shape[-1]

    def original_map(self, regions: RegionValues | None = None) -> Tensor:
        """A map of the test image (the class's by default) in the original image's size: (H0, W0)."""
        return (regions or self.class_map).map(self.original_size)

    def save(self, stem: Path | str) -> tuple[Path, Path]:
        """Writes `stem.json` and `stem.npz`."""
        from protopfaith.explanation.saving import save

        return save(self, stem)

    def figure(self, **options: Any) -> Any:
        """The paper's figure; see `protopfaith.show.figures.figure`."""
        from protopfaith.show.figures import figure

        return figure(self, **options)

    def report(self, path: Path | str) -> Path:
        """Writes one self-contained HTML page."""
        from protopfaith.show.report import write_report

        return write_report(self, path)

    def _repr_html_(self) -> str:
        from protopfaith.show.notebook import explanation_html

        return explanation_html(self)

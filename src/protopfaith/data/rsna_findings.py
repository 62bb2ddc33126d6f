"""RSNA as one finding, pneumonia, that is there or not."""

from __future__ import annotations

from pathlib import Path

from protopfaith.data.findings import as_finding
from protopfaith.data.imagedata import ImageData
from protopfaith.data.registry import DATASETS, Fold, Size
from protopfaith.data.rsna import load_rsna


@DATASETS.register("rsna_findings")
def load_rsna_findings(
    *, root: Path | None, size: Size, seed: int, fold: Fold, skip_unreadable: bool
) -> ImageData:
    """RSNA with one finding, pneumonia, that is there or not: for networks that decide findings."""
    data = load_rsna(root=root, size=size, seed=seed, fold=fold, skip_unreadable=skip_unreadable)
    return as_finding(data, "pneumonia")

"""Saving a case: the very files that `protopfaith explain` writes."""

from __future__ import annotations

import io
import shutil
import zipfile
from collections.abc import Generator
from pathlib import Path

from protopfaith.explanation.case_files import write_case
from protopfaith.serve.case import Case

KINDS = {
    "report.html": "text/html; charset=utf-8",
    "figure.png": "image/png",
    "explanation.json": "application/json",
    "explanation.npz": "application/octet-stream",
    "case.zip": "application/zip",
}
"""What is saved, and its type."""
MEANINGS = {
    "report.html": "the report, one self-contained page",
    "figure.png": "the figure",
    "explanation.json": "all numbers but maps",
    "explanation.npz": "the maps",
    "case.zip": "all of them",
}


def save_pieces(case: Case, folder: Path, *, keep: bool) -> Generator[None, None, dict[str, bytes]]:
    """Makes the files of a case, source image after source image; returns them by name.

    Args:
        case: as it is now.
        folder: where they are written on the way, a private one.
        keep: whether they stay there.
    """
    if case.result is None:
        yield
    assert case.decision is not None
    with_sources = case.has_sources()
    if with_sources:
        for prototype in case.decision.named:
            case.network.explainer.sources.explain([prototype], case.settings)
            yield
    explanation = case.explanation(sources=with_sources)
    place = folder / f"case-{case.id}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)
    try:
        write_case(explanation, place)
        files = {name: (place / name).read_bytes() for name in KINDS if (place / name).is_file()}
    finally:
        if not keep:
            shutil.rmtree(place, ignore_errors=True)
    files["case.zip"] = _zipped(files)
    return files


def _zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()

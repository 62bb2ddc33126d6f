"""The files of a case (data, report, figures, DICOM files of one explanation), and the page of all cases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from protopfaith.arguments import instance
from protopfaith.explanation.explanation import Explanation
from protopfaith.files import is_file, is_folder, is_whole

REPORT = "report.html"


def check_figures(kinds: Sequence[str]) -> None:
    """Raises if figures cannot be written in one of these formats."""
    from protopfaith.show.figures import check_format

    for kind in kinds:
        instance(kind, str, "The format of a figure", "a name such as png")
        check_format(_figure_name(kind))


def write_case(
    explanation: Explanation, folder: Path, figures: Sequence[str] = ("png",), *, dicom: Path | None = None
) -> None:
    """Writes report, data and figures of one explanation.

    Args:
        explanation: what is written
        folder: of the case
        figures: formats of the figures
        dicom: the DICOM file that the image came as, if the map shall be a file of its study, too
    """
    from protopfaith.show.report import write_report

    folder.mkdir(parents=True, exist_ok=True)
    explanation.save(folder / "explanation")
    _write_figures(explanation, folder, figures)
    write_report(explanation, folder / REPORT)
    if dicom is not None:
        from protopfaith.show.dicom import write_dicom

        write_dicom(explanation, dicom, folder)


def complete_case(
    explanation: Explanation, folder: Path, figures: Sequence[str] = ("png",), *, dicom: Path | None = None
) -> None:
    """Writes those files of a finished case that nobody asked for before, or that were cut or lost.

    Args:
        explanation: of the case
        folder: where its other files are
        figures: formats of the figures
        dicom: see `write_case`
    """
    from protopfaith.show.dicom import PICTURE, write_dicom
    from protopfaith.show.report import write_report

    lost = [kind for kind in figures if not is_whole(folder / _figure_name(kind))]
    _write_figures(explanation, folder, lost)
    if not is_whole(folder / REPORT):
        write_report(explanation, folder / REPORT)
    if dicom is not None and not is_file(folder / PICTURE):
        write_dicom(explanation, dicom, folder)


def _write_figures(explanation: Explanation, folder: Path, kinds: Sequence[str]) -> None:
    from protopfaith.show.figures import figure

    for kind in kinds:
        figure(explanation, folder / _figure_name(kind))


def _figure_name(kind: str) -> str:
    return f"figure.{kind.lstrip('.')}"


def write_cases_page(folder: Path, cases: Sequence[Path], failures: Sequence[tuple[str, str]] = ()) -> Path:
    """Writes the page of all cases in a folder: those of this call, then those of earlier ones.

    Args:
        folder: of all cases
        cases: folders of this call's cases
        failures: name of an image and why it has no case
    """
    from protopfaith.show.index import write_index

    found = folder.glob("[!.]*/explanation.json") if is_folder(folder) else ()
    there = [path.parent for path in sorted(found)]
    return write_index(folder / "index.html", list(dict.fromkeys([*cases, *there])), failures)

"""The page on explainers: tables, curves and maps."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protopfaith.evaluation.explainers import EXPLAINERS
from protopfaith.evaluation.metrics.axioms import AXIOMS
from protopfaith.evaluation.results import Faithfulness
from protopfaith.show.encoding import data_uri
from protopfaith.show.faithfulness.tables import BEST, METRICS, SANITY, Metric, axiom_text, metric_cells
from protopfaith.show.faithfulness.words import COLUMNS, lead
from protopfaith.show.pages import write_page

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = {True: "pass", False: "fail", None: "none"}


@dataclass(frozen=True)
class TableView:
    """Column titles, and for each explainer its label and cells (text, kind)."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


def write_faithfulness(path: Path, found: Faithfulness, figures: Mapping[str, Figure], title: str) -> Path:
    """Writes the page; figures are embedded by their headline."""
    common = found.common
    return write_page(
        path,
        "faithfulness.html",
        title=title,
        lead=lead(found),
        metrics=_metrics(found, METRICS),
        common=common and {"prototypes": len(common.prototypes), "metrics": _metrics(common, METRICS)},
        remarks=[BEST, *found.remarks()],
        figures={name: _embedded(figure) for name, figure in figures.items()},
        axioms=_axioms(found),
        sanity=_metrics(found, SANITY),
        meanings=_meanings(found),
        settings=json.dumps(found.settings, indent=1, default=str),
    )


def _metrics(found: Faithfulness, metrics: tuple[Metric, ...]) -> TableView:
    shown, rows = metric_cells(found, metrics)
    lines = [
        (label, tuple((text, "best" if best else "") for text, best in cells))
        for label, cells in rows.items()
    ]
    return TableView(tuple(metric.title for metric in shown), tuple(lines))


def _axioms(found: Faithfulness) -> TableView | None:
    if not found.results:
        return None
    lines = [
        (result.name, tuple((axiom_text(check), KINDS[check.passed]) for check in result.axioms))
        for result in found.results
    ]
    return TableView(tuple(check.axiom for check in found.results[0].axioms), tuple(lines))


def _meanings(found: Faithfulness) -> dict[str, str]:
    things: dict[str, Any] = {result.name: EXPLAINERS[result.name] for result in found.results}
    documented = {
        name: " ".join((thing.__doc__ or "").split()) for name, thing in {**things, **AXIOMS}.items()
    }
    return {**COLUMNS, **documented}


def _embedded(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return data_uri(buffer.getvalue())

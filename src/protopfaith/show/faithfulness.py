"""One self-contained HTML page: tables, curves and maps."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

from protopfaith.evaluation.explainers import EXPLAINERS
from protopfaith.evaluation.metrics.axioms import AXIOMS
from protopfaith.evaluation.results import Faithfulness
from protopfaith.show.faithfulness_tables import METRICS, SANITY, Metric, axiom_text, metric_cells

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 80rem;
  margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .82rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .42rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #e4e4e4; }
th { font-weight: 600; vertical-align: bottom; white-space: pre-line; }
th:first-child, td:first-child { text-align: left; }
td.best { font-weight: 700; background: #e6f4ea; }
td.pass { background: #e6f4ea; } td.fail { background: #fde7e7; } td.none { color: #888; }
img { max-width: 100%; height: auto; } p.note { color: #444; max-width: 60rem; }
dt { font-weight: 600; } dd { margin: 0 0 .5rem 1.2rem; color: #444; }
pre { font-size: .8rem; white-space: pre-wrap; }
"""


def render(found: Faithfulness, figures: Mapping[str, Figure], title: str) -> str:
    """The page's HTML; figures are embedded by their headline."""
    images = "".join(
        f'<h2>{escape(name)}</h2><img alt="{escape(name)}" src="{_embedded(figure)}">'
        for name, figure in figures.items()
    )
    remarks = "".join(f'<p class="note">{escape(sentence)}</p>' for sentence in found.remarks())
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style>'
        f"<h1>{escape(title)}</h1><h2>How faithful is each explainer?</h2>{_metrics(found, METRICS)}{remarks}"
        f"{_common(found)}{images}<h2>Axioms</h2>"
        '<p class="note">The violation as a share of the largest value (of the total, for completeness); '
        "it passes up to 1%, or (±) within four standard errors where an explainer knows them. Linearity "
        "under log similarity is expected to fail: it shows why the network uses distances themselves.</p>"
        f"{_axioms(found)}<h2>Sanity and relevance</h2>"
        '<p class="note">Rank correlation with the explanation after the weights were shuffled (near 0 is '
        "right) and after noise was added to the image (near 1 is right); the share of the positive map on "
        "the object.</p>"
        f"{_metrics(found, SANITY)}<h2>What the names mean</h2>{_meanings(found)}"
        f"<h2>Settings</h2><pre>{escape(json.dumps(found.settings, indent=1, default=str))}</pre></html>"
    )


def _metrics(found: Faithfulness, metrics: tuple[Metric, ...]) -> str:
    shown, rows = metric_cells(found, metrics)
    lines = [
        [(label, ""), *((text, "best" if best else "") for text, best in cells)]
        for label, cells in rows.items()
    ]
    return _table(["explainer", *(metric.title for metric in shown)], lines)


def _common(found: Faithfulness) -> str:
    common = found.common
    if common is None:
        return ""
    title = f"On the {len(common.prototypes)} prototypes that all explainers have in common"
    return f"<h2>{title}</h2>{_metrics(common, METRICS)}"


def _axioms(found: Faithfulness) -> str:
    kinds = {True: "pass", False: "fail", None: "none"}
    lines = [
        [(r.name, ""), *((axiom_text(check), kinds[check.passed]) for check in r.axioms)]
        for r in found.results
    ]
    return _table(["explainer", *(check.axiom for check in found.results[0].axioms)], lines) if lines else ""


def _table(header: list[str], lines: list[list[tuple[str, str]]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f'<td class="{kind}">{escape(text)}</td>' for text, kind in line) + "</tr>"
        for line in lines
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _meanings(found: Faithfulness) -> str:
    names = {result.name: EXPLAINERS[result.name] for result in found.results}
    texts = {name: thing.__doc__ or "" for name, thing in {**names, **AXIOMS}.items()}
    entries = (f"<dt>{escape(n)}</dt><dd>{escape(' '.join(t.split()))}</dd>" for n, t in texts.items())
    return f"<dl>{''.join(entries)}</dl>"


def _embedded(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()

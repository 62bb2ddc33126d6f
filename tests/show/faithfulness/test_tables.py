from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from protopfaith.evaluation.results import Faithfulness
from protopfaith.show.faithfulness.tables import METRICS, best_of, metric_cells, terminal_tables


def test_who_has_fewer_prototypes_is_never_the_best(judgment: Faithfulness) -> None:
    cells = metric_cells(judgment, METRICS)[1]
    assert list(cells) == ["ours", "random", "dasp (n=2)"]
    assert not any(best for _, best in cells["dasp (n=2)"])
    assert any(best for _, best in cells["ours"])


def test_nobody_is_best_within_overlapping_errors(judgment: Faithfulness) -> None:
    ours, random, _ = judgment.results
    aopc = METRICS[0]
    assert best_of([ours, random], aopc) == "ours"
    close = replace(random, curves={kind: 0.999 * curve for kind, curve in ours.curves.items()})
    assert best_of([ours, close], aopc) is None


def test_nobody_is_best_on_few_prototypes(judgment: Faithfulness) -> None:
    few = judgment.only(range(9))
    assert not any(best for cells in metric_cells(few, METRICS)[1].values() for _, best in cells)


def test_maps_that_claim_no_shares_have_no_gap(judgment: Faithfulness) -> None:
    ours, random, _ = judgment.results
    shown = replace(judgment, results=(ours, replace(random, shares=False)))
    metrics, cells = metric_cells(shown, METRICS)
    place = [metric.name for metric in metrics].index("completeness_gap")
    assert cells["ours"][place][0] == "1.0%"
    assert cells["random"][place][0] == "-"


def test_the_terminal_gets_every_table_in_80_columns(judgment: Faithfulness) -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(terminal_tables(judgment))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    for words in ("Removal", "Truth", "Sanity", "Axioms", "in common", "owen was left out"):
        assert words in text

from __future__ import annotations

import io

from rich.console import Console

from protopfaith.evaluation.results import Faithfulness
from protopfaith.show.faithfulness.tables import METRICS, metric_cells, terminal_tables


def test_who_has_fewer_prototypes_is_never_the_best(judgment: Faithfulness) -> None:
    cells = metric_cells(judgment, METRICS)[1]
    assert list(cells) == ["ours", "random", "dasp (n=2)"]
    assert not any(best for _, best in cells["dasp (n=2)"])
    assert any(best for _, best in cells["ours"])


def test_the_terminal_gets_every_table_in_80_columns(judgment: Faithfulness) -> None:
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(terminal_tables(judgment))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80
    for words in ("Removal", "Truth", "Sanity", "Axioms", "in common", "owen was left out"):
        assert words in text

from __future__ import annotations

from dataclasses import replace

from protopfaith.evaluation.results import Faithfulness
from protopfaith.show.faithfulness.page import write_faithfulness
from protopfaith.show.faithfulness.words import lead


def test_the_winner_is_named_where_there_are_enough_prototypes(judgment: Faithfulness) -> None:
    page = write_faithfulness(judgment.page, judgment, {}, "Who?").read_text(encoding="utf-8")
    assert "Removing what ours calls most important hurts the network most." in page
    assert "<dt>Pearson, Spearman</dt>" in page


def test_few_prototypes_name_nobody(judgment: Faithfulness) -> None:
    few = replace(judgment, prototypes=(0, 1), results=tuple(one.only([0, 1]) for one in judgment.results))
    assert "too few to say which explainer is the best" in lead(few)
    assert "ours" not in lead(few)


def test_what_chance_explains_names_nobody(judgment: Faithfulness) -> None:
    alike = replace(judgment, results=(judgment.results[0], replace(judgment.results[0], name="twin")))
    assert "No explainer is better" in lead(alike)

from __future__ import annotations

from dataclasses import replace

import pytest

from protopfaith.explanation import Explanation
from protopfaith.show.sums import AVERAGE, NORMALIZER, OTHERS, complete_sums, evidence_bars, probability_bars


def numbers(table) -> list[float]:
    return [float(row.text) for row in table.rows]


def test_the_bars_add_up_and_longer_is_more(explanation: Explanation) -> None:
    mine, rival = evidence_bars(explanation)
    for table in (mine, rival):
        *terms, total = numbers(table)
        assert sum(terms) == pytest.approx(total, abs=0.01)
        assert {AVERAGE, OTHERS} < {row.label for row in table.rows}
        *prototypes, _, _ = terms
        assert prototypes == sorted(prototypes, reverse=True)
    assert mine.caption == f"Evidence for {explanation.class_names[explanation.target]}"
    assert rival.caption == f"Evidence for {explanation.class_names[explanation.rival]}"
    assert [row.kind for row in mine.rows if row.label == AVERAGE] == ["neutral"]


def test_the_complete_sum_leaves_out_nothing(explanation: Explanation) -> None:
    for table in complete_sums(explanation):
        *terms, total = numbers(table)
        assert sum(terms) == pytest.approx(total, abs=0.01)


def test_without_an_average_there_are_no_bars_of_evidence(explanation: Explanation) -> None:
    assert evidence_bars(replace(explanation, closeness=None, rival_closeness=None)) == []


def test_explained_classes_are_among_the_probabilities(explanation: Explanation) -> None:
    last = int(explanation.probabilities.argmin())
    asked = replace(explanation, target=last, versus=explanation.prediction)
    labels = [row.label for row in probability_bars(asked).rows]
    assert explanation.class_names[last] in labels
    assert explanation.class_names[explanation.prediction] in labels
    assert len(labels) <= 5
    assert "not calibrated" in probability_bars(replace(explanation, temperature=None)).caption


def test_the_bars_of_a_log_probability_add_up_to_it(explanation: Explanation) -> None:
    log = replace(explanation, output="log_probability")
    for table, label in zip(evidence_bars(log), (log.target, log.rival), strict=True):
        *terms, total = numbers(table)
        assert sum(terms) == pytest.approx(total, abs=0.01)
        assert table.rows[-1].label == "sum: log probability"
        assert total == pytest.approx(float(log.probabilities[label].log()), abs=0.002)
        assert [row.kind for row in table.rows if row.label == NORMALIZER] == ["neutral"]

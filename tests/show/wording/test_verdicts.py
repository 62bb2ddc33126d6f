from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from protopfaith.explanation import Explanation
from protopfaith.explanation.findings import Finding
from protopfaith.show.heat import error_of
from protopfaith.show.wording.numbers import percent
from protopfaith.show.wording.verdicts import (
    MEANINGS,
    UNFAMILIAR,
    decision_verdict,
    map_verdict,
    verdict_on,
)
from protopfaith.training.thresholds import HALF


def with_probabilities(explanation: Explanation, *first: float) -> Explanation:
    """The same with these probabilities of the first classes, the rest being shared out."""
    others = len(explanation.class_names) - len(first)
    p = torch.tensor([*first, *[(1 - sum(first)) / max(others, 1)] * others])
    known = {"nearest_distance": 1.0, "usual_distance": 2.0}
    return replace(explanation, probabilities=p, prediction=0, target=0, true_class=None, **known)


def with_error(explanation: Explanation, error: float) -> Explanation:
    """The same with a class map of that relative error."""
    mine = explanation.class_map
    errors = torch.full_like(mine.values, error * float(mine.values.square().mean().sqrt()))
    return replace(explanation, class_map=replace(mine, standard_errors=errors))


@pytest.mark.parametrize(
    ("probabilities", "word"),
    [((0.99,), "sure"), ((0.8, 0.1), "likely"), ((0.4, 0.05), "unsure"), ((0.45, 0.44), "toss-up")],
)
def test_a_decision_is_sure_likely_unsure_or_a_toss_up(
    explanation: Explanation, probabilities: tuple[float, ...], word: str
) -> None:
    found = decision_verdict(with_probabilities(explanation, *probabilities))
    assert found.word == word
    assert (found.kind == "alert") is (word in ("unsure", "toss-up"))
    assert f"{explanation.class_names[0]} ({percent(probabilities[0])})" in found.text


def test_how_rough_the_map_is_does_not_change_the_decision(explanation: Explanation) -> None:
    said = {repr(decision_verdict(with_error(explanation, error))) for error in (0.01, 0.2, 0.9)}
    assert len(said) == 1


@pytest.mark.parametrize(("error", "word"), [(0.0, "exact"), (0.05, "sharp"), (0.2, "fair"), (0.45, "rough")])
def test_a_map_is_exact_sharp_fair_or_rough(explanation: Explanation, error: float, word: str) -> None:
    asked = with_error(explanation, error)
    found = map_verdict(asked)
    assert found.word == word
    assert bool(found.command) is (word == "rough")
    assert ("does not make the decision less certain" in found.text) is (word == "rough")
    assert error == 0 or f"±{percent(error_of(asked.class_map))}" in found.text
    assert found.text.endswith(MEANINGS[word])
    assert f"{error_of(asked.class_map):.4g}" in found.exact


def test_a_map_without_errors_does_not_claim_any(explanation: Explanation) -> None:
    mine = explanation.class_map
    nothing = replace(mine, standard_errors=torch.full_like(mine.values, torch.nan))
    assert "%" not in map_verdict(replace(explanation, class_map=nothing)).text


def test_what_is_unlike_all_that_is_known_is_not_called_sure(explanation: Explanation) -> None:
    strange = replace(with_probabilities(explanation, 0.99), nearest_distance=3.0)
    found = decision_verdict(strange)
    assert (found.word, found.kind) == (UNFAMILIAR, "alert")
    assert "should not be relied on" in found.text
    usual = replace(strange, nearest_distance=0.0)
    assert decision_verdict(usual).text.endswith("calibrated.")  # not noticed is not the same as familiar
    unknown = replace(strange, nearest_distance=None)
    assert decision_verdict(unknown).word == "sure"
    assert "is not known" in decision_verdict(unknown).text


def test_it_says_whether_probabilities_are_calibrated(explanation: Explanation) -> None:
    sure = with_probabilities(explanation, 0.99)
    assert ", calibrated" in decision_verdict(replace(sure, temperature=1.5)).text
    assert "not calibrated" in decision_verdict(replace(sure, temperature=None)).text


@pytest.mark.parametrize("verdict", ["present", "absent", "uncertain"])
def test_a_finding_is_present_absent_or_uncertain(explanation: Explanation, verdict: str) -> None:
    finding = Finding("edema", 0.3, verdict, HALF, 1.0, 0.0, None)
    found = decision_verdict(replace(with_probabilities(explanation, 0.99), findings=(finding,)))
    assert (found.word, found.kind) == (verdict, "alert" if verdict == "uncertain" else "")
    assert "edema (30%)" in found.text


def test_evidence_outside_the_object_is_called_out(explanation: Explanation) -> None:
    nowhere = torch.zeros_like(explanation.class_map.flat.players.labels, dtype=torch.bool)
    nowhere[0, 0] = True
    assert any("outside" in chip.text for chip in map_verdict(replace(explanation, mask=nowhere)).chips)
    assert not map_verdict(replace(explanation, mask=~nowhere)).chips
    assert not map_verdict(replace(with_error(explanation, 0.9), mask=nowhere)).chips  # much of it is chance


@pytest.mark.parametrize(("probabilities", "word"), [((0.99,), "sure, but wrong"), ((0.45, 0.44), "toss-up")])
def test_a_wrong_decision_is_an_alert(
    explanation: Explanation, probabilities: tuple[float, ...], word: str
) -> None:
    wrong = replace(with_probabilities(explanation, *probabilities), true_class=2)
    found = decision_verdict(wrong)
    assert (found.word, found.kind) == (word, "alert")
    right = decision_verdict(replace(wrong, true_class=0))
    assert "wrong" not in f"{right.word} {right.chips}"


def test_maps_of_functions_have_verdicts_without_a_decision(explanation: Explanation) -> None:
    rough = with_error(explanation, 0.45).class_map
    found = verdict_on(rough, "raise or lower it", "do")
    assert (found.kind, found.word) == ("rough", "rough")
    assert "decision" not in found.text
    assert (
        "raise or lower it"
        in verdict_on(replace(rough, standard_errors=0 * rough.values), "raise or lower it").text
    )

"""Findings in words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from protopfaith.explanation import Explanation
from protopfaith.explanation.findings import Finding
from protopfaith.show.wording.findings import about_thresholds, findings_lead, overall
from protopfaith.show.wording.places import lies
from protopfaith.training.thresholds import HALF, FindingRule


def said(name: str, verdict: str, rule: FindingRule = HALF) -> Finding:
    return Finding(name, 0.5, verdict, rule, 0.0, 0.0, None)


@pytest.mark.parametrize(
    ("verdicts", "sentence"),
    [
        ({}, "The network finds none of its findings."),
        ({"a": "absent"}, "The network finds none of its findings."),
        ({"a": "present"}, "The network finds a."),
        ({"a": "present", "b": "present", "c": "absent"}, "The network finds a and b."),
        ({"a": "uncertain"}, "The network finds none of its findings, and is not sure about a."),
        ({"a": "present", "b": "uncertain"}, "The network finds a, and is not sure about b."),
        (dict.fromkeys("abcdefgh", "present"), "The network finds a, b, c, d, e, f and 2 more."),
    ],
)
def test_all_findings_in_a_sentence(verdicts: dict[str, str], sentence: str) -> None:
    assert overall([said(name, verdict) for name, verdict in verdicts.items()]) == sentence


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (FindingRule(0.5, 0.5, 0.5, 1, 9), "Too few"),
        (FindingRule(0.5, 0.5, 0.5, 9, 9), "Present from 50% on, absent below."),
        (FindingRule(0.5, 0.25, 0.75, 9, 9), "uncertain between"),
    ],
)
def test_thresholds_are_told(rule: FindingRule, words: str) -> None:
    assert words in about_thresholds(said("a", "present", rule))


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        ("present", "The network finds edema (50%)."),
        ("absent", "The network finds no edema (50%)."),
        ("uncertain", "The network is not sure about edema (50%)."),
    ],
)
def test_the_only_finding_is_told_once(explanation: Explanation, verdict: str, sentence: str) -> None:
    lead = findings_lead(replace(explanation, findings=(said("edema", verdict),), target=0))
    assert lead.startswith(sentence)
    assert f"edema is {verdict}" not in lead
    assert "Explained here" not in lead


@pytest.mark.parametrize("verdict", ["present", "uncertain"])
def test_the_place_of_a_finding_is_that_of_its_map(explanation: Explanation, verdict: str) -> None:
    asked = replace(explanation, findings=(said("edema", verdict), said("mass", "absent")), target=0)
    lead = findings_lead(asked)
    assert f"Explained here: edema, {verdict} (50%)." in lead
    for_it, against = lies(asked.class_map), lies(asked.class_map, sign=-1)
    assert (f"What speaks for edema {for_it}." in lead) is (for_it is not None)
    told = verdict == "uncertain" and against is not None
    assert (f"What speaks against edema {against}." in lead) is told

"""Findings in words."""

from __future__ import annotations

import pytest

from protopfaith.explanation.findings import HALF, Finding
from protopfaith.show.wording.findings import about_thresholds, overall
from protopfaith.training.thresholds import FindingRule


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

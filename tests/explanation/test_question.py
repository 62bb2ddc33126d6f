"""What stands above an explanation, and that a toss-up is not asked "why"."""

from __future__ import annotations

import pytest
import torch

from protopfaith.explanation.findings import Finding
from protopfaith.explanation.question import CLOSE, about_finding, question, sureness
from protopfaith.training.thresholds import HALF

NAMES = ("cat", "dog", "owl")
SURE, CLOSE_CALL = torch.tensor([0.9, 0.06, 0.04]), torch.tensor([0.42, 0.38, 0.2])
NO_IDEA = torch.full((10,), 0.1)


def test_it_is_a_toss_up_just_below_the_factor() -> None:
    for factor, word in ((CLOSE * 0.99, "toss-up"), (CLOSE * 1.01, "likely")):
        p = torch.tensor([1.0, factor, 0.1])
        assert sureness(p / p.sum()) == word
    assert sureness(torch.tensor([1.0])) == "sure"


def test_two_classes_of_many_that_are_equally_improbable_are_no_toss_up() -> None:
    assert sureness(NO_IDEA) == "unsure"
    assert question([str(i) for i in range(10)], NO_IDEA, 0) == "Unsure: perhaps 0?"


@pytest.mark.parametrize(
    ("target", "versus", "sure", "close"),
    [
        (0, None, "Why cat?", "Toss-up: cat or dog?"),
        (0, 1, "Why cat and not dog?", "Toss-up: cat or dog?"),
        (0, 2, "Why cat and not owl?", "Why cat and not owl?"),
        (1, None, "What speaks for dog?", "Toss-up: cat or dog?"),
        (2, None, "What speaks for owl?", "What speaks for owl?"),
        (2, 0, "What speaks for owl and not cat?", "What speaks for owl and not cat?"),
    ],
)
def test_only_what_was_decided_is_asked_why(target: int, versus: int | None, sure: str, close: str) -> None:
    assert question(NAMES, SURE, target, versus) == sure
    assert question(NAMES, CLOSE_CALL, target, versus) == close


@pytest.mark.parametrize("p", [SURE, CLOSE_CALL])
def test_what_the_network_does_not_know_is_said_first(p: torch.Tensor) -> None:
    assert question(NAMES, p, 0, unfamiliar=True).startswith("Unfamiliar image: ")
    finding = Finding("edema", 0.9, "present", HALF, 1.0, 0.0, None)
    assert about_finding(finding, unfamiliar=True) == "Unfamiliar image: edema present?"

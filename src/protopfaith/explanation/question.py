"""The question that an explanation answers, as its title says it: "Why cat?", "Toss-up: cat or dog?"."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from protopfaith.explanation.findings import Finding

SURE = 0.95  # probability from which on a decision is called sure
LIKELY = 0.5
CLOSE = 1.5  # times as probable as the next class: less is a toss-up, where both make up most


def sureness(probabilities: Tensor) -> str:
    """How sure a decision for one class is: "sure", "likely", "toss-up" between two, or "unsure".

    >>> import torch
    >>> [sureness(torch.tensor(p)) for p in ([0.9, 0.1], [0.55, 0.45], [0.4, 0.2, 0.2, 0.2])]
    ['likely', 'toss-up', 'unsure']
    """
    first, second = [*probabilities.double().sort(descending=True).values.tolist(), 0.0][:2]
    if first < CLOSE * second and first + second >= LIKELY:
        return "toss-up"
    return "sure" if first >= SURE else "likely" if first >= LIKELY else "unsure"


def most_probable(probabilities: Tensor) -> list[int]:
    """The two most probable classes, or the only one."""
    best: list[int] = probabilities.double().argsort(descending=True, stable=True)[:2].tolist()
    return best


def question(
    names: Sequence[str],
    probabilities: Tensor,
    target: int,
    versus: int | None = None,
    *,
    unfamiliar: bool = False,
) -> str:
    """What is asked about a decision for one class. Only what was decided is asked "why".

    Args:
        names: of the classes
        probabilities: of all classes, (C,)
        target: the class that is explained
        versus: the class that it is compared with, if that was asked for
        unfamiliar: whether the image looks like nothing the network knows

    >>> import torch
    >>> question(["cat", "dog"], torch.tensor([0.9, 0.1]), 0)
    'Why cat?'
    >>> question(["cat", "dog"], torch.tensor([0.55, 0.45]), 0)
    'Toss-up: cat or dog?'
    """
    best, word = most_probable(probabilities), sureness(probabilities)
    if word == "toss-up" and {target, versus} <= {*best, None}:
        caution, asked = "Toss-up", " or ".join(names[label] for label in best)
    elif word == "unsure" and (target, versus) == (best[0], None):
        caution, asked = "Unsure", f"perhaps {names[target]}"
    else:
        caution, asked = "", _why(names, probabilities, target, versus)
    caution = "Unfamiliar image" if unfamiliar else caution
    return f"{caution}: {asked}?" if caution else f"{asked[0].upper()}{asked[1:]}?"


def _why(names: Sequence[str], probabilities: Tensor, target: int, versus: int | None) -> str:
    """Why a class was preferred; or what speaks for it all the same."""
    other = most_probable(probabilities)[0] if versus is None else versus
    preferred = target == other or bool(probabilities[target] > probabilities[other])
    against = "" if versus is None else f" and not {names[versus]}"
    return f"{'why' if preferred else 'what speaks for'} {names[target]}{against}"


def about_finding(finding: Finding, *, unfamiliar: bool = False) -> str:
    """What is said of a finding.

    Args:
        finding: the one that is explained
        unfamiliar: whether the image looks like nothing the network knows

    >>> from protopfaith.training.thresholds import HALF
    >>> about_finding(Finding("edema", 0.9, "present", HALF, 1.0, 0.0, None))
    'edema: present'
    """
    if unfamiliar:
        return f"Unfamiliar image: {finding.name} {finding.verdict}?"
    return f"{finding.name}: {finding.verdict}"

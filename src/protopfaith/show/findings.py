"""The findings of an image as the report shows them: one card each, with its map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from protopfaith.explanation.findings import Finding
from protopfaith.show.heat import scale_of
from protopfaith.show.pictures import DrawnPicture, Meaning, Pictures
from protopfaith.show.wording.findings import about_thresholds
from protopfaith.show.wording.numbers import percent

ORDER = ("present", "uncertain", "absent")


@dataclass(frozen=True)
class FindingCard:
    """One finding of the report."""

    name: str
    verdict: str
    percent: str
    share: float  # of the bar's width, in percent
    marks: tuple[float, ...]  # where the bar has its thresholds, in percent
    evidence: str
    thresholds: str
    picture: DrawnPicture | None
    explained: bool
    number: int


def finding_cards(
    findings: Sequence[Finding], explained: int, pixels: Tensor, pictures: Pictures
) -> list[FindingCard]:
    """One for each finding: those that are present first, then uncertain ones; all maps on one scale.

    Args:
        findings: what is said of each
        explained: the one that the page explains
        pixels: of the image, uint8, C x H x W
        pictures: those of the page
    """
    maps = [one.regions for one in findings if one.regions is not None]
    scale = scale_of(maps) if maps else 1.0
    return [
        _card(findings[number], number, scale, pixels, pictures, explained=number == explained)
        for number in ranked_findings(findings)
    ]


def ranked_findings(findings: Sequence[Finding]) -> list[int]:
    """The numbers of findings: those that are present first, then uncertain ones.

    >>> from protopfaith.training.thresholds import HALF
    >>> found = [Finding(v, p, v, HALF, 0.0, 0.0, None) for v, p in (("absent", 0.1), ("present", 0.9))]
    >>> ranked_findings(found)
    [1, 0]
    """
    return sorted(
        range(len(findings)), key=lambda one: (ORDER.index(findings[one].verdict), -findings[one].probability)
    )


def _evidence(one: Finding) -> str:
    """How much speaks for a finding and against it.

    >>> from protopfaith.training.thresholds import HALF
    >>> _evidence(Finding("edema", 0.9, "present", HALF, 13.2, 0.0, None))
    '+13 for it, none against it'
    """
    sides = {"for": one.evidence_for, "against": one.evidence_against}
    return ", ".join(f"{f'{share:+.2g}' if share else 'none'} {side} it" for side, share in sides.items())


def _card(
    one: Finding, number: int, scale: float, pixels: Tensor, pictures: Pictures, *, explained: bool
) -> FindingCard:
    picture = None
    if one.regions is not None:
        meaning = Meaning("in the score", f"It speaks for {one.name}.", f"It speaks against {one.name}.")
        picture = pictures.ours(pixels, one.regions, scale, f"Map of what speaks for {one.name}", meaning)
    return FindingCard(
        one.name,
        one.verdict,
        percent(one.probability).replace("more than ", ">").replace("less than ", "<"),
        round(100 * one.probability, 2),
        tuple(sorted({round(100 * one.rule.absent_below, 2), round(100 * one.rule.present_above, 2)})),
        _evidence(one),
        about_thresholds(one),
        picture,
        explained=explained,
        number=number,
    )

"""The findings of an image as the report shows them: one card each, with its map."""

from __future__ import annotations

from dataclasses import dataclass

from protopfaith.explanation.explanation import Explanation
from protopfaith.explanation.findings import Finding
from protopfaith.show.heat import scale_of
from protopfaith.show.pictures import Meaning, Picture, Pictures
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
    picture: Picture | None
    explained: bool


def finding_cards(explanation: Explanation, pictures: Pictures) -> list[FindingCard]:
    """One for each finding: those that are present first, then uncertain ones; all maps on one scale."""
    findings = explanation.findings
    maps = [one.regions for one in findings if one.regions is not None]
    scale = scale_of(maps) if maps else 1.0
    ranked = sorted(
        enumerate(findings), key=lambda pair: (ORDER.index(pair[1].verdict), -pair[1].probability)
    )
    return [
        _card(explanation, one, scale, pictures, explained=number == explanation.target)
        for number, one in ranked
    ]


def _card(
    explanation: Explanation, one: Finding, scale: float, pictures: Pictures, *, explained: bool
) -> FindingCard:
    picture = None
    if one.regions is not None:
        meaning = Meaning("in the score", f"It speaks for {one.name}.", f"It speaks against {one.name}.")
        picture = pictures.ours(
            explanation.pixels, one.regions, scale, f"Map of what speaks for {one.name}", meaning
        )
    return FindingCard(
        one.name,
        one.verdict,
        percent(one.probability),
        round(100 * one.probability, 2),
        tuple(sorted({round(100 * one.rule.absent_below, 2), round(100 * one.rule.present_above, 2)})),
        f"{one.evidence_for:+.2g} for it, {one.evidence_against:+.2g} against it",
        about_thresholds(one),
        picture,
        explained,
    )

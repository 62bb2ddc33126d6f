"""The findings of an image in words: which are present, which absent, which uncertain, and why."""

from __future__ import annotations

from collections.abc import Sequence

from protopfaith.explanation.explanation import Explanation
from protopfaith.explanation.findings import Finding
from protopfaith.show.wording.numbers import percent
from protopfaith.show.wording.places import place_for

MOST_NAMED = 6  # findings in one sentence


def findings_lead(explanation: Explanation) -> str:
    """What is said of all findings in a sentence, and what the explained one rests on in another."""
    return f"{overall(explanation.findings)} {about_target(explanation)}"


def overall(findings: Sequence[Finding]) -> str:
    """Which findings are present, and which are uncertain.

    >>> from protopfaith.explanation.findings import HALF
    >>> overall([Finding("edema", 0.9, "present", HALF, 1.0, 0.0, None)])
    'The network finds edema.'
    """
    present = [one.name for one in findings if one.verdict == "present"]
    unsure = [one.name for one in findings if one.verdict == "uncertain"]
    said = f"The network finds {_listed(present)}" if present else "The network finds none of its findings"
    if unsure:
        said += f", and is not sure about {_listed(unsure)}"
    return f"{said}."


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:MOST_NAMED])
    if len(names) > MOST_NAMED:
        shown.append(f"{len(names) - MOST_NAMED} more")
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def about_target(explanation: Explanation) -> str:
    """Why the explained finding is called so: the nearest prototype of the kind that won, and where."""
    found = explanation.findings[explanation.target]
    for_it = found.probability >= found.rule.threshold
    wanted = [one for one in explanation.evidence if (one.weight >= 0) == for_it]
    if not wanted:
        return f"{found.name} has a probability of {percent(found.probability)}."
    best = min(wanted, key=lambda one: one.distance)
    where = place_for(best.test)
    looks = "the image" if where is None else where
    stands = stands_for(found.name, best.weight)
    return (
        f"{found.name} is {found.verdict} ({percent(found.probability)}), above all because {looks} looks "
        f"like prototype {best.prototype}, which stands for {stands}."
    )


def stands_for(name: str, weight: float) -> str:
    """What a prototype of a finding speaks for, by its weight.

    >>> stands_for("edema", 2.0), stands_for("edema", -1.0)
    ('edema', 'no edema')
    """
    return name if weight >= 0 else f"no {name}"


def about_thresholds(found: Finding) -> str:
    """From where on a finding counts as present or absent."""
    rule = found.rule
    if not rule.chosen:
        return "Too few validation images have it, or lack it, to choose a threshold: one half decides."
    if rule.absent_below == rule.present_above:
        return f"Present from {percent(rule.threshold)} on, absent below."
    return (
        f"Present from {percent(rule.present_above)} on, absent below {percent(rule.absent_below)}, "
        "uncertain between."
    )

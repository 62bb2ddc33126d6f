"""The findings of an image in words: which are present, which absent, which uncertain, and why."""

from __future__ import annotations

from collections.abc import Sequence

from protopfaith.explanation.explanation import Explanation, PrototypeEvidence
from protopfaith.explanation.findings import Finding
from protopfaith.show.wording.numbers import percent
from protopfaith.show.wording.places import lies

MOST_NAMED = 6  # findings in one sentence
SIDES = {1: "for", -1: "against"}


def findings_lead(explanation: Explanation) -> str:
    """What is said of all findings in a sentence, and what the explained one rests on in others."""
    found = explanation.findings[explanation.target]
    if len(explanation.findings) == 1:
        said = f"{_of_one(found)} ({percent(found.probability)})."
    else:
        said = (
            f"{overall(explanation.findings)} Explained here: {found.name}, {found.verdict} "
            f"({percent(found.probability)})."
        )
    if explanation.is_unfamiliar:
        said += " But the image looks like nothing it knows."
    return f"{said} {about_target(explanation)}".rstrip()


def _of_one(found: Finding) -> str:
    """What a network that has one finding says of it."""
    return {
        "present": f"The network finds {found.name}",
        "absent": f"The network finds no {found.name}",
    }.get(found.verdict, f"The network is not sure about {found.name}")


def overall(findings: Sequence[Finding]) -> str:
    """Which findings are present, and which are uncertain.

    >>> from protopfaith.training.thresholds import HALF
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
    """Why the explained finding is called so: the nearest prototype of the kind that won, and where in the
    image that what speaks for or against it lies; nothing where no such prototype is shown."""
    found, best = explanation.findings[explanation.target], deciding_of_finding(explanation)
    if best is None:
        return ""
    said = _looks_like(explanation, best)
    wanted = (1, -1) if found.verdict == "uncertain" else (1,) if _speaks_for(found) else (-1,)
    places = {SIDES[sign]: lies(explanation.class_map, sign) for sign in wanted}
    told = [
        f"What speaks {side} {found.name} {where}." for side, where in places.items() if where is not None
    ]
    return " ".join([said, *(told or ["Where in the image that comes from is not clear yet."])])


def _looks_like(explanation: Explanation, best: PrototypeEvidence) -> str:
    """What the image is most like; where that leaves the finding open, also what the other side has."""
    found = explanation.findings[explanation.target]
    other = _nearest(explanation, for_it=best.weight < 0)
    stands = stands_for(found.name, best.weight)
    if found.verdict == "uncertain" and other is not None:
        against = stands_for(found.name, other.weight)
        return (
            f"It looks like prototype {best.prototype}, which stands for {stands}, but also like prototype "
            f"{other.prototype}, which stands for {against}."
        )
    return f"It looks most like prototype {best.prototype}, which stands for {stands}."


def deciding_of_finding(explanation: Explanation) -> PrototypeEvidence | None:
    """The nearest prototype of the kind that won: for the explained finding, or against it."""
    return _nearest(explanation, for_it=_speaks_for(explanation.findings[explanation.target]))


def _nearest(explanation: Explanation, *, for_it: bool) -> PrototypeEvidence | None:
    wanted = [one for one in explanation.evidence if (one.weight >= 0) == for_it]
    return min(wanted, key=lambda one: one.distance, default=None)


def _speaks_for(found: Finding) -> bool:
    return found.probability >= found.rule.threshold


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

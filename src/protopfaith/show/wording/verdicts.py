"""The two verdicts on top: how sure the decision is, and how sharp the map. One says nothing of the other."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from protopfaith.explanation.explanation import Explanation
from protopfaith.explanation.question import most_probable, sureness
from protopfaith.explanation.regions import RegionValues
from protopfaith.show.heat import decided, error_of
from protopfaith.show.wording.commands import AIM, sharper
from protopfaith.show.wording.findings import about_thresholds
from protopfaith.show.wording.numbers import percent
from protopfaith.show.wording.outputs import empty_share
from protopfaith.show.wording.sharpness import sides, strength

FAIR = AIM  # relative error from which on a map is no longer called sharp
ROUGH = 0.3  # relative error above which a map is called rough
MOSTLY = 0.5  # share of the evidence outside the object that is called out
UNFAMILIAR = "looks like nothing the network knows"
MEANINGS = {
    "exact": "Nothing in it is left to chance.",
    "sharp": "What is not colored hardly matters.",
    "fair": "On which side colored regions stand is clear; their strength may still change somewhat.",
    "rough": "A rough map does not make the decision less certain.",
}
"""What the words for a map mean to those who read it."""


@dataclass(frozen=True)
class Chip:
    """A short fact that belongs to a verdict; `kind` is "good", "alert" or nothing."""

    text: str
    kind: str = ""

    @property
    def sentence(self) -> str:
        """The same where text goes on.

        >>> Chip("right: it is a cat").sentence
        'Right: it is a cat.'
        """
        return f"{self.text[:1].upper()}{self.text[1:]}."


@dataclass(frozen=True)
class Verdict:
    """What is said first of the decision or of the map.

    Args:
        about: "Decision" or "Map"
        word: the verdict itself
        text: what it rests on
        kind: "alert" where the decision should not be relied on, "rough" of a map, or nothing
        chips: facts that belong to it
        command: what would make it better
        exact: the numbers behind it, for those who ask
    """

    about: str
    word: str
    text: str
    kind: str = ""
    chips: tuple[Chip, ...] = ()
    command: str = ""
    exact: str = ""

    @property
    def heading(self) -> str:
        return f"{self.about}: {self.word}"


def verdicts(explanation: Explanation) -> tuple[Verdict, Verdict]:
    """How sure the decision is, and how sharp the map."""
    return decision_verdict(explanation), map_verdict(explanation)


def decision_verdict(explanation: Explanation) -> Verdict:
    """Sure, likely, unsure or a toss-up; of a finding whether it is present; or unlike all that is known."""
    chips = tuple(chip for chip in [_right(explanation)] if chip is not None)
    if explanation.is_unfamiliar:
        return Verdict("Decision", UNFAMILIAR, _unfamiliar(explanation), "alert", chips)
    word, text = _of_finding(explanation) if explanation.findings else _of_class(explanation)
    wrong = is_wrong(explanation)
    usual = FAMILIARITY[explanation.is_unfamiliar]
    kind = "" if word in ("sure", "likely", "present", "absent") and not wrong else "alert"
    word += ", but wrong" if wrong and word in ("sure", "likely") else ""
    rule = f" {about_thresholds(explanation.findings[explanation.target])}" if explanation.findings else ""
    return Verdict("Decision", word, f"{text}, {_calibrated(explanation)}.{rule}{usual}", kind, chips)


def _of_class(explanation: Explanation) -> tuple[str, str]:
    word, best = sureness(explanation.probabilities), most_probable(explanation.probabilities)
    named = best[:1] if word in ("sure", "likely") else best
    return word, " or ".join(_with_share(explanation, label) for label in named)


def _of_finding(explanation: Explanation) -> tuple[str, str]:
    found = explanation.findings[explanation.target]
    return found.verdict, f"{found.name} ({percent(found.probability)})"


def _with_share(explanation: Explanation, label: int) -> str:
    return f"{explanation.class_names[label]} ({percent(float(explanation.probabilities[label]))})"


def _calibrated(explanation: Explanation) -> str:
    return "calibrated" if explanation.calibrated else "not calibrated"


def _unfamiliar(explanation: Explanation) -> str:
    """What it says all the same, and why that should not be relied on."""
    if explanation.findings:
        _, said = _of_finding(explanation)
    else:
        said = _with_share(explanation, explanation.prediction)
    near, usual = explanation.nearest_distance or 0.0, explanation.usual_distance or 0.0
    limit = f" ({near / usual:.1f} times as much as is still usual)" if usual > 0 else ""
    return (
        f"It says {said}, but should not be relied on: this image differs from those that the network was "
        f"trained on more than 99 of 100 validation images do{limit}."
    )


FAMILIARITY = {
    False: "",  # that it was not noticed is no sign that it is familiar
    None: " Whether such images are familiar to the network is not known: that needs validation images.",
}
"""What is said where an image is not unfamiliar."""


def is_wrong(explanation: Explanation) -> bool:
    """Whether the image is known to be of another class than the network says."""
    return explanation.true_class not in (None, explanation.prediction)


def _right(explanation: Explanation) -> Chip | None:
    if explanation.findings:
        return None
    if explanation.true_class is None:
        return Chip("whether that is right is not known")
    name = explanation.class_names[explanation.true_class]
    if is_wrong(explanation):
        return Chip(f"wrong: it is {name}", "alert")
    leaning = sureness(explanation.probabilities) not in ("sure", "likely")
    return Chip(f"it is {name}") if leaning else Chip(f"right: it is {name}", "good")


def map_verdict(explanation: Explanation) -> Verdict:
    """Exact, sharp, fair or rough, and how many regions it decides."""
    chips = tuple(chip for chip in [_outside(explanation), _same_when_empty(explanation)] if chip is not None)
    found = replace(verdict_on(explanation.class_map), chips=chips)
    if found.kind != "rough":
        return found
    command = sharper(explanation, error_of(explanation.class_map))
    return replace(found, text=f"{found.text} {MEANINGS['rough']}", command=command)


def verdict_on(regions: RegionValues, do: str = "speak for or against", speak: str = "speak") -> Verdict:
    """What is said of any map: how sharp it is, and how many regions it decides.

    Args:
        regions: the map
        do: what regions do that are colored
        speak: the same in one word
    """
    mine = regions.flat
    if not mine.errors_known:
        unknown = "This estimator does not know its error: every region is colored, and any may be off."
        return Verdict("Map", "of unknown sharpness", unknown)
    error, count, many = error_of(regions), int(decided(mine).sum()), len(mine.values)
    word = _how_sharp(error)
    said = _what_it_shows(count, many) if word == "rough" else sides(count, many, do)
    silent = word == "rough" or count == many  # that one is about decisions, the others about what is left
    means = "" if silent else f" {MEANINGS[word]}"
    return Verdict(
        "Map",
        word,
        f"{said} How strongly regions {speak} is {strength(error)}.{means}",
        "rough" if word == "rough" else "",
        exact=f"{count} of {many} regions are decided; the relative error of the map is {error:.4g}",
    )


def _how_sharp(error: float) -> str:
    if error == 0:
        return "exact"
    return "rough" if error > ROUGH else "fair" if error > FAIR else "sharp"


def _what_it_shows(count: int, regions: int) -> str:
    """What a rough map is good for all the same."""
    if not count:
        return "It does not show yet where that comes from: no region is clear enough to be colored."
    colored = "one colored region has" if count == 1 else f"{count} colored regions have"
    return f"Only the {colored} a clear side; the other {regions - count} do not yet."


def is_rough(explanation: Explanation) -> bool:
    """Whether the class map must not be read without a warning."""
    return explanation.class_map.errors_known and error_of(explanation.class_map) > ROUGH


def _outside(explanation: Explanation) -> Chip | None:
    share = share_outside(explanation)
    if share is None or share <= MOSTLY or is_rough(explanation):  # much of a rough map is chance
        return None
    return Chip(f"{percent(share)} of the evidence lies outside the object", "alert")


def _same_when_empty(explanation: Explanation) -> Chip | None:
    p = empty_share(explanation)
    return None if p is None else Chip(f"an empty image would be called the same ({percent(p)})", "alert")


def share_outside(explanation: Explanation) -> float | None:
    """The share of the evidence for the class that lies outside the mask; None where that is not known."""
    if explanation.mask is None:
        return None
    inside = explanation.class_map.share_inside(explanation.mask)
    return None if math.isnan(inside) else 1 - inside

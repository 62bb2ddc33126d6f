"""How far an explanation can be trusted, in plain words."""

from __future__ import annotations

import math
from dataclasses import dataclass

from protopfaith.explanation.explanation import Explanation
from protopfaith.explanation.regions import RegionValues
from protopfaith.shapley import ESTIMATORS
from protopfaith.show.heat import decided, error_of
from protopfaith.show.wording.commands import sharper
from protopfaith.show.wording.costs import cost
from protopfaith.show.wording.numbers import asked, percent
from protopfaith.show.wording.outputs import about_empty, own_map
from protopfaith.show.wording.sharpness import hard, strength
from protopfaith.show.wording.verdicts import ROUGH, is_rough

BASELINES = {
    "zero": "a plain color, the one that normalization makes zero",
    "blur": "a blurred copy of the image",
}
ADDS_UP = 1e-4  # of the sizes involved: the digits that are shown of a sum
LIMITS = (
    "A map says what the network uses, not whether that is right, nor what causes what in the world.",
    "Values depend on the regions and on what stands in for an absent one: "
    "partly hidden images are images that the network was not trained on.",
    "A region's value is an average over all contexts of other regions; "
    "how regions act together is not shown.",
    "ProtoPNet's own map stands here for comparison: it is the distance map of the last layer, enlarged. "
    "It does not add up to anything, and the part of the image that it marks "
    "need not be the part that the network used.",
    "The paper's score Ψₖ ranks the prototypes of one class; "
    "it leaves out that every prototype also counts for or against the other classes. "
    "The bars of evidence, and the complete sum, leave out nothing.",
)
LIMITS_WITHOUT_SUMS = LIMITS[:-1]  # where a decision is no sum, there is no score to rank by
LIMITS_OF_WAYS = (
    *LIMITS[:-1],
    "The way that is shown is the most probable one; the tree adds up all its leaves.",
)
LIMITS_OF_FINDINGS = (
    *LIMITS[:3],
    "An occurrence map, the network's own explanation, says where a prototype looks, not what it finds "
    "there: it does not add up to anything, and a region may matter through the regions that V sees with it.",
    "Thresholds were chosen on validation images, and hold for images like those.",
)


def limits(explanation: Explanation) -> tuple[str, ...]:
    """What no such explanation can say."""
    if explanation.findings:
        return LIMITS_OF_FINDINGS
    sums = LIMITS if explanation.decomposition is not None else LIMITS_WITHOUT_SUMS
    found = sums if explanation.route is None else LIMITS_OF_WAYS
    name = own_map(explanation)
    return tuple(text.replace("ProtoPNet's own map", name[:1].upper() + name[1:]) for text in found)


@dataclass(frozen=True)
class Remark:
    """A sentence or two, and what must not be overlooked."""

    text: str
    warning: str = ""


def remarks(explanation: Explanation) -> list[Remark]:
    """The box "How faithful is this?"."""
    said = [
        _what(explanation),
        _how(explanation),
        _precision(explanation),
        _completeness(explanation),
        _rounding(explanation),
        _undecided(explanation),
        _sum(explanation),
        _second(explanation),
        _resembling(explanation),
        *(Remark(note) for note in explanation.notes),
    ]
    return [one for one in said if one is not None]


@dataclass(frozen=True)
class Banner:
    """What a reader must know besides how sure the decision is and how sharp the map."""

    title: str
    text: str
    command: str = ""


def banners(explanation: Explanation) -> list[Banner]:
    """Those that this explanation needs beside its verdicts; usually none."""
    if explanation.coarse:
        return [Banner("This is the quick, coarse answer.", "The report on fine regions follows.")]
    return []


def rough_prototypes(explanation: Explanation) -> list[Banner]:
    """What stands above the maps of prototypes where some are rougher than the verdict on the map says."""
    error, worst = error_of(explanation.class_map), explanation.precision
    if not explanation.class_map.errors_known or is_rough(explanation) or worst <= ROUGH:
        return []
    return [
        Banner(
            "Some maps of prototypes are rough.",
            f"How strongly regions speak is {strength(worst)} in the worst of them, and {strength(error)} in "
            "the class map. A larger budget sharpens them:",
            sharper(explanation, worst),
        )
    ]


def stand_in(baseline: str) -> str:
    """What stands where a region is absent."""
    name = baseline.split(" ", maxsplit=1)[0]
    return f"{BASELINES[name]} (baseline {baseline})" if name in BASELINES else f"the baseline {baseline}"


def relative_gap(regions: RegionValues) -> float:
    """By how much the sum was off, before anything was shared out."""
    return _over(regions.total, regions.gap)


def _what(explanation: Explanation) -> Remark:
    return Remark(
        f"The maps show Shapley values of {explanation.settings['players']}: how much each region adds "
        f"when it is shown instead of {stand_in(explanation.baseline)}, "
        f"averaged over all orders in which regions can appear. {about_empty(explanation)}".rstrip()
    )


def _how(explanation: Explanation) -> Remark:
    traits = ESTIMATORS.traits(explanation.method)
    how = f"They were {traits.description} (estimator {explanation.method})"
    if not traits.evaluates:
        return Remark(f"{how}, in {cost(explanation)}; the network itself was not sampled.")
    return Remark(f"{how}, from {cost(explanation)} of the network itself in {explanation.seconds:.1f} s.")


def _precision(explanation: Explanation) -> Remark:
    precision = explanation.precision_asked
    missed = precision is not None and not explanation.reached
    goal = "" if precision is None else asked(precision)
    if not explanation.class_map.errors_known:
        return Remark(
            "This estimator gives no standard errors: how far off its values are is not known.",
            f"Whether the precision asked for, {goal}, was reached is not known either." if missed else "",
        )
    if explanation.precision == 0:
        return Remark("How strongly regions speak is known exactly: values have no sampling error.")
    return Remark(
        f"How strongly regions speak is {strength(explanation.precision)} in the worst of the maps of this "
        f"image: values are off by {explanation.precision:.3g} of a typical one (relative error). Point at a "
        "region to see its own error.",
        hard(explanation.evaluations, goal) if missed else "",
    )


def _completeness(explanation: Explanation) -> Remark:
    """Whether the values add up, and how far they did before anything was shared out: by the numbers
    themselves, whatever the estimator."""
    mine = explanation.class_map
    every = [mine, *(one.test for one in explanation.evidence)]
    every += [one.source_side.regions for one in explanation.evidence if one.source_side is not None]
    left = [_over(one.total, float(one.values.sum()) - one.total) for one in every]
    found = [relative_gap(one) for one in every]
    total = f"{float(mine.values.sum()):+.4g}"
    if not all(_adds_up(one) for one in every):
        return Remark(
            "The values should add up to what showing the whole image instead of the baseline changes, "
            f"but these do not: those of the class map add up to {total}, and the score changes by "
            f"{mine.total:+.4g}. They are off by {percent(left[0])} here and by "
            f"{percent(max(left[1:], default=0.0))} in the worst prototype's map; nothing was shared out."
        )
    text = (
        f"The values add up, as they should: those of the class map to {total}, and showing the whole image "
        f"instead of the baseline changes the score by {mine.total:+.4g}."
    )
    if mine.total < 0 and explanation.output == "logit" and not explanation.findings:
        text += (
            " That is below zero: this class's own score is higher on the baseline alone. What decides is "
            "how far it is above the others, which the margin explains."
        )
    if max(found) > ADDS_UP:
        text += (
            f" Before what was missing was shared out, the sums were off by {percent(found[0])} here and by "
            f"{percent(max(found[1:], default=0.0))} in the worst prototype's map."
        )
    return Remark(text)


def _adds_up(regions: RegionValues) -> bool:
    size = max(abs(regions.total), float(regions.values.abs().sum()))
    return abs(float(regions.values.sum()) - regions.total) <= ADDS_UP * size


def _over(total: float, gap: float) -> float:
    return abs(gap) / abs(total) if total else (0.0 if gap == 0 else math.inf)


def _rounding(explanation: Explanation) -> Remark | None:
    kind, change = explanation.settings.get("autocast"), explanation.settings.get("rounding")
    if kind is None or change is None:
        return None
    return Remark(
        f"To save time the network computed in {kind} while regions were hidden; the decision, its "
        "distances and the bars are in float32. Rounding moved the sums by up to "
        f"{percent(change)} before that was shared out, too."
    )


def _undecided(explanation: Explanation) -> Remark | None:
    mine = explanation.class_map.flat
    count = int((~decided(mine)).sum())
    if not mine.errors_known or not count:
        return None
    return Remark(
        f"{count} of the {len(mine.values)} regions of the class map are uncolored (undecided): whether they "
        "speak for or against the class is not clear yet. Of those that are colored, "
        "about one in twenty is expected to have the wrong sign at most."
    )


def _sum(explanation: Explanation) -> Remark | None:
    sum_ = explanation.decomposition
    if sum_ is None:
        return None
    if sum_.versus is not None:
        return Remark(
            f"The complete sum is the difference of the two log probabilities, {sum_.total:+.6g}, "
            "with nothing left out."
        )
    if explanation.findings:
        p = explanation.probabilities[sum_.target].double()
        return Remark(
            "The complete sum is the log odds of the finding, with nothing left out: "
            f"{_five(sum_.total)}; the network's own output gives {_five(float(p.logit()))}."
        )
    stated = float(explanation.probabilities[sum_.target].log())
    return Remark(
        "The complete sum is the log probability of the class with nothing left out: "
        f"{_five(sum_.total)}; the network's own output gives {_five(stated)}."
    )


def _five(value: float) -> str:
    """A sum in as many decimals as float32 keeps of it: rounding errors are no result.

    >>> _five(-2.4e-15), _five(-0.0711)
    ('0.00000', '-0.07110')
    """
    return f"{round(value, 5) + 0.0:.5f}"


def _second(explanation: Explanation) -> Remark | None:
    second = explanation.second
    if second is None:
        return None
    agreed = second.class_agreement
    text = (
        f"With {stand_in(second.baseline)} in place of absent regions instead, "
        f"the class map correlates with this one by {agreed.correlation:.2f}"
    )
    if agreed.compared:
        same = percent(agreed.same_sign)
        text += f", and of the {agreed.compared} regions that both decide, {same} have the same sign"
    disagree = "The two disagree, so the choice of baseline matters for this image."
    return Remark(f"{text}.", disagree if agreed.correlation < 0.7 else "")


def _resembling(explanation: Explanation) -> Remark | None:
    """That what is shown of some prototypes is not what they are."""
    exact = [one.source.exact for one in explanation.evidence if one.source is not None]
    if all(exact):
        return None
    return Remark(
        f"{exact.count(False)} of the {len(exact)} prototypes shown lie on no patch of the images found.",
        "What is shown as the source of these is the nearest patch, which only resembles them.",
    )

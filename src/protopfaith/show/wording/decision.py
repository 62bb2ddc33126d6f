"""The answer in a sentence or two, and how sure it is."""

from __future__ import annotations

import math
from dataclasses import dataclass

from protopfaith.explanation.decomposition import Closeness
from protopfaith.explanation.explanation import Explanation, PrototypeEvidence
from protopfaith.show.heat import decided, error_of
from protopfaith.show.wording.findings import findings_lead
from protopfaith.show.wording.numbers import percent
from protopfaith.show.wording.outputs import rival_of
from protopfaith.show.wording.places import place_for

MOSTLY = 0.5  # share of the evidence outside the object that is called out
ROUGH = 0.3  # relative error above which a map must not be read without a warning
CLOSE = 1.1  # a ratio of probabilities that no one should rely on


@dataclass(frozen=True)
class Chip:
    """A short fact on how sure something is; `kind` is "good", "alert" or nothing."""

    text: str
    kind: str = ""


def lead(explanation: Explanation) -> str:
    """What was decided, which prototype decides and where, and what the rival lacked."""
    if explanation.findings:
        return findings_lead(explanation)
    return f"{_decided(explanation)} {_rival(explanation)}"


def deciding(explanation: Explanation) -> PrototypeEvidence:
    """The prototype of the explained class that speaks most for it."""
    found = explanation.closeness
    mine = [one for one in explanation.evidence if one.class_index == explanation.target]
    if found is None or not mine:
        return explanation.evidence[0]
    shares = dict(zip(found.prototypes.tolist(), found.shares.tolist(), strict=True))
    return max(mine, key=lambda one: shares.get(one.prototype, float("-inf")))


def _decided(explanation: Explanation) -> str:
    target, p = _named(explanation, explanation.target)
    if explanation.target == explanation.prediction:
        return f"The network sees {target} ({p}), above all because {_because(explanation)}."
    predicted, q = _named(explanation, explanation.prediction)
    seen = f"The network sees {predicted} ({q}), not {target} ({p}), the class explained here."
    found = explanation.closeness
    if found is not None and bool((found.shares <= 0).all()):
        return (
            f"{seen} The image is farther from all prototypes of {target} than training images usually are."
        )
    return f"{seen} What speaks most for {target}: {_because(explanation)}."


def _because(explanation: Explanation) -> str:
    if explanation.route is not None and explanation.route.turns:
        return _because_of_turns(explanation)
    best = deciding(explanation)
    place = place_for(best.test)
    if place is None:
        return f"it is close to prototype {best.prototype}, though where in the image is not decided"
    return f"{place} looks like prototype {best.prototype}"


def _because_of_turns(explanation: Explanation) -> str:
    """The surest yes with its place, and what the image is not like."""
    assert explanation.route is not None
    turns = sorted(explanation.route.turns, key=lambda turn: -turn.probability)
    said = []
    for turn in [turn for turn in turns if turn.right][:1]:
        one = next(one for one in explanation.evidence if one.prototype == turn.prototype)
        place = place_for(one.test) or "a part of it"
        said.append(f"{place} looks like prototype {turn.prototype} ({percent(turn.probability)})")
    unlike = [str(turn.prototype) for turn in turns if not turn.right][:3]
    if unlike:
        many = "prototypes " if len(unlike) > 1 else "prototype "
        said.append(f"nothing in it looks like {many}{_or(unlike)}")
    return " and ".join(said)


def _or(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _rival(explanation: Explanation) -> str:
    name = rival_of(explanation)
    label = explanation.class_names.index(name)
    which = "" if explanation.versus is not None else "The next class, "
    if label == explanation.prediction:
        which = "The class that it sees, "
    subject = f"{which}{name} ({percent(float(explanation.probabilities[label]))}),"
    mine, other = explanation.closeness, explanation.rival_closeness
    if mine is None or other is None:
        ahead = _ahead(explanation, label)
        if explanation.runner_up is None:
            return f"{subject[:-1]} is {compared(ahead)}."
        return f"{subject[:-1]} has a score that is {abs(ahead):.3g} {'lower' if ahead > 0 else 'higher'}."
    target = explanation.class_names[explanation.target]
    return f"{subject} {_support(mine, other, name, target)}."


def _ahead(explanation: Explanation, rival: int) -> float:
    """By how much the explained class's score, or log probability, is above its rival's."""
    if explanation.runner_up is not None:
        return explanation.runner_up.total
    p = explanation.probabilities.double()
    return float(p[explanation.target].log() - p[rival].log())


def compared(ahead: float) -> str:
    """How probable the rival is beside a class that is `ahead` in log probability.

    >>> compared(math.log(3)), compared(0.01)
    ('3.0 times less probable', 'about as probable: too close to call')
    """
    factor = math.exp(min(abs(ahead), 30.0))
    if factor < CLOSE:
        return "about as probable: too close to call"
    many = f"{factor:.1f}" if factor < 10 else f"{factor:,.0f}" if factor < 1e6 else "a million"
    return f"{many} times {'less' if ahead > 0 else 'more'} probable"


def _support(mine: Closeness, other: Closeness, rival: str, target: str) -> str:
    """How much the rival is supported by its own prototypes, beside the explained class."""
    ours, theirs = float(mine.shares.sum()), float(other.shares.sum())
    best = int(other.shares.argmax())
    if float(other.shares[best]) <= 0:
        return "lacks support: the image is farther from all its prototypes than training images usually are"
    how = "less" if theirs < 0.9 * ours else "about as much" if theirs < 1.1 * ours else "more"
    name = f"prototype {int(other.prototypes[best])}"
    return (
        f"has {how} support from its prototypes, most from {name}: {theirs:+.2g} for {rival}, "
        f"{ours:+.2g} for {target}"
    )


def how_sure(explanation: Explanation) -> list[Chip]:
    """Short facts on the decision and on the map."""
    label = explanation.target if explanation.findings else explanation.prediction
    p = percent(float(explanation.probabilities[label]))
    calibrated = "calibrated" if explanation.calibrated else "not calibrated"
    chips = [
        Chip(f"decision: {p}, {calibrated}"),
        _right(explanation),
        _familiar(explanation),
        _map_chip(explanation),
        _outside(explanation),
    ]
    return [chip for chip in chips if chip is not None]


def _right(explanation: Explanation) -> Chip | None:
    if explanation.true_class is None:
        return None
    name = explanation.class_names[explanation.true_class]
    if explanation.true_class == explanation.prediction:
        return Chip(f"right: it is {name}", "good")
    return Chip(f"wrong: it is {name}", "alert")


def _outside(explanation: Explanation) -> Chip | None:
    share = share_outside(explanation)
    if share is None or share <= MOSTLY:
        return None
    return Chip(f"{percent(share)} of the evidence lies outside the object", "alert")


def share_outside(explanation: Explanation) -> float | None:
    """The share of the evidence for the class that lies outside the mask; None where that is not known."""
    if explanation.mask is None:
        return None
    inside = explanation.class_map.share_inside(explanation.mask)
    return None if math.isnan(inside) else 1 - inside


def about_mask(explanation: Explanation) -> str:
    """A first look at shortcuts: how much of the evidence lies where the object is not."""
    share = share_outside(explanation)
    if explanation.mask is None:
        return ""
    covers = percent(float(explanation.mask.double().mean()))
    if share is None:
        return f"The dashed line is the object's border; it covers {covers} of the image."
    target = explanation.class_names[explanation.target]
    return (
        f"The dashed line is the object's border. {percent(share)} of the evidence for {target} "
        f"lies outside; the object covers {covers} of the image."
    )


def _familiar(explanation: Explanation) -> Chip | None:
    strange = explanation.is_unfamiliar
    if strange is None:
        return None
    if strange:
        return Chip("looks like nothing the network knows", "alert")
    return Chip("as near to its prototypes as usual")


def _map_chip(explanation: Explanation) -> Chip:
    mine = explanation.class_map.flat
    if not mine.errors_known:
        return Chip("map: this estimator does not know its error")
    error, count = error_of(explanation.class_map), int(decided(mine).sum())
    if error == 0:
        return Chip("map: exact", "good")
    text = f"map: {count} of {len(mine.values)} regions decided, a region's typical error {percent(error)}"
    return Chip(text, "alert" if is_rough(explanation) else "")


def is_rough(explanation: Explanation) -> bool:
    """Whether a banner must say how large the error of the class map is."""
    return explanation.class_map.errors_known and error_of(explanation.class_map) > ROUGH


def _named(explanation: Explanation, label: int) -> tuple[str, str]:
    return explanation.class_names[label], percent(float(explanation.probabilities[label]))

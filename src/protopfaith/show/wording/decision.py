"""The answer in a sentence or two, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

from protopfaith.explanation.decomposition import Closeness
from protopfaith.explanation.explanation import Explanation, PrototypeEvidence
from protopfaith.show.heat import decided
from protopfaith.show.wording.numbers import percent
from protopfaith.show.wording.outputs import rival_of
from protopfaith.show.wording.places import place_for

ROUGH = 0.3  # relative error above which a map must not be read without a warning


@dataclass(frozen=True)
class Chip:
    """A short fact on how sure something is; `kind` is "good", "alert" or nothing."""

    text: str
    kind: str = ""


def lead(explanation: Explanation) -> str:
    """What was decided, which prototype decides and where, and what the rival lacked."""
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
    best = deciding(explanation)
    place = place_for(best.test)
    if place is None:
        because = f"because of prototype {best.prototype}; where in the image is not decided"
    else:
        because = f"because {place} looks like prototype {best.prototype}"
    if explanation.target != explanation.prediction:
        predicted, q = _named(explanation, explanation.prediction)
        return (
            f"The network sees {predicted} ({q}), not {target} ({p}), the class explained here. "
            f"What speaks for {target} does so above all {because}."
        )
    return f"The network sees {target} ({p}), above all {because}."


def _rival(explanation: Explanation) -> str:
    name = rival_of(explanation)
    label = explanation.class_names.index(name)
    which = "" if explanation.versus is not None else "The next class, "
    subject = f"{which}{name} ({percent(float(explanation.probabilities[label]))}),"
    mine, other = explanation.closeness, explanation.rival_closeness
    if mine is None or other is None:
        ahead = explanation.runner_up.total
        return f"{subject[:-1]} has a score that is {abs(ahead):.3g} {'lower' if ahead > 0 else 'higher'}."
    return f"{subject} {_support(mine, other)}."


def _support(mine: Closeness, other: Closeness) -> str:
    """How much the rival is supported by its own prototypes, beside the explained class."""
    ours, theirs = float(mine.shares.sum()), float(other.shares.sum())
    best = int(other.shares.argmax())
    if float(other.shares[best]) <= 0:
        return "lacks support: the image is farther from all its prototypes than training images usually are"
    name = f"prototype {int(other.prototypes[best])}"
    if theirs < ours:
        return f"has less support: {theirs:+.3g} from its prototypes, most from {name}, against {ours:+.3g}"
    return f"has support, too: {theirs:+.3g} from its prototypes, most from {name}, beside {ours:+.3g}"


def how_sure(explanation: Explanation) -> list[Chip]:
    """Short facts on the decision and on the map."""
    p = percent(float(explanation.probabilities[explanation.prediction]))
    calibrated = "calibrated" if explanation.calibrated else "not calibrated"
    chips = [Chip(f"decision: {p}, {calibrated}"), _familiar(explanation), _map_chip(explanation)]
    return [chip for chip in chips if chip is not None]


def _familiar(explanation: Explanation) -> Chip | None:
    strange = explanation.is_unfamiliar
    if strange is None:
        return None
    if strange:
        return Chip("looks like nothing the network knows", "alert")
    return Chip("as near to its prototypes as usual", "good")


def _map_chip(explanation: Explanation) -> Chip:
    mine = explanation.class_map.flat
    if not mine.errors_known:
        return Chip("map: this estimator does not know its error")
    if explanation.precision == 0:
        return Chip("map: exact", "good")
    error, count = percent(explanation.precision), int(decided(mine).sum())
    text = f"map: error about {error}, {count} of {len(mine.values)} regions decided"
    return Chip(text, "alert" if is_rough(explanation) else "")


def is_rough(explanation: Explanation) -> bool:
    """Whether a banner must say how large the error is."""
    return explanation.class_map.errors_known and explanation.precision > ROUGH


def _named(explanation: Explanation, label: int) -> tuple[str, str]:
    return explanation.class_names[label], percent(float(explanation.probabilities[label]))

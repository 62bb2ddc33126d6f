"""The answer in a sentence or two, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

from protopfaith.explanation.explanation import Explanation
from protopfaith.show.heat import decided
from protopfaith.show.wording.numbers import percent
from protopfaith.show.wording.places import place_for


@dataclass(frozen=True)
class Chip:
    """A short fact on how sure something is; `kind` is "good", "alert" or nothing."""

    text: str
    kind: str = ""


def lead(explanation: Explanation) -> str:
    """What was decided, which prototype decides, and what the rival lacked."""
    return f"{_decided(explanation)} {_rival(explanation)}"


def _decided(explanation: Explanation) -> str:
    target, p = _named(explanation, explanation.target)
    best = explanation.evidence[0]
    place = place_for(best.test)
    why = f"prototype {best.prototype}, a part of a training image of {best.class_name}"
    because = (
        f"because {place} looks like {why}"
        if place
        else f"because of {why}; where in the image is not decided"
    )
    if explanation.target != explanation.prediction:
        predicted, q = _named(explanation, explanation.prediction)
        return (
            f"The network sees {predicted} ({q}), not {target} ({p}), the class explained here. "
            f"What speaks for {target} does so above all {because}."
        )
    return f"The network sees {target} ({p}), above all {because}."


def _rival(explanation: Explanation) -> str:
    rival, q = _named(explanation, explanation.runner_up.versus or 0)
    ahead = explanation.runner_up.total
    which = "" if explanation.versus is not None else ", the next class,"
    return f"{rival}{which} gets {q}: its score is {abs(ahead):.3g} {'lower' if ahead > 0 else 'higher'}."


def how_sure(explanation: Explanation) -> list[Chip]:
    """Short facts on the decision and on the map."""
    return [_map_chip(explanation)]


def _map_chip(explanation: Explanation) -> Chip:
    mine = explanation.class_map.flat
    if not mine.errors_known:
        return Chip("map: this estimator does not know its error")
    if explanation.precision == 0:
        return Chip("map: exact", "good")
    count = int(decided(mine).sum())
    text = f"map: error about {percent(explanation.precision)}, {count} of {len(mine.values)} regions decided"
    return Chip(text, "alert" if is_rough(explanation) else "")


ROUGH = 0.3  # relative error above which a map must not be read without a warning


def is_rough(explanation: Explanation) -> bool:
    return explanation.class_map.errors_known and explanation.precision > ROUGH


def _named(explanation: Explanation, label: int) -> tuple[str, str]:
    return explanation.class_names[label], percent(float(explanation.probabilities[label]))

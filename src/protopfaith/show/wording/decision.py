"""The answer in a few sentences: what was decided, by which prototype, where, and what the rival lacked."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from protopfaith.explanation.decomposition import Closeness
from protopfaith.explanation.explanation import Explanation, PrototypeEvidence
from protopfaith.explanation.question import CLOSE, most_probable, sureness
from protopfaith.show.wording.findings import deciding_of_finding, findings_lead
from protopfaith.show.wording.numbers import percent
from protopfaith.show.wording.outputs import adds_nothing, against, rival_of
from protopfaith.show.wording.places import lies
from protopfaith.show.wording.verdicts import is_rough, is_wrong, share_outside


def lead(explanation: Explanation) -> str:
    """What was decided, which prototype decides and where, and what the rival lacked."""
    if explanation.findings:
        return findings_lead(explanation)
    said = f"{_decided(explanation)} {_where(explanation)}{against(explanation)}"
    return said if explanation.is_unfamiliar else f"{said} {_rival(explanation)}"  # none of them is known


def _corrected(explanation: Explanation) -> str:
    """What it is instead, where the network is known to be wrong."""
    truth = explanation.true_class
    if truth is None or not is_wrong(explanation):
        return ""
    return f" That is wrong: it is {explanation.class_names[truth]}."


def deciding(explanation: Explanation) -> PrototypeEvidence | None:
    """The prototype that the answer names first; None where a tree finds none in the image."""
    if explanation.findings:
        return deciding_of_finding(explanation)
    if explanation.route is not None and explanation.route.turns:
        return _surest_yes(explanation)
    found = explanation.closeness
    mine = [one for one in explanation.evidence if one.class_index == explanation.target]
    if found is None or not mine:
        return explanation.evidence[0]
    shares = dict(zip(found.prototypes.tolist(), found.shares.tolist(), strict=True))
    return max(mine, key=lambda one: shares.get(one.prototype, float("-inf")))


def _surest_yes(explanation: Explanation) -> PrototypeEvidence | None:
    """The prototype on the way through a tree that the image is most surely like."""
    assert explanation.route is not None
    found = [turn for turn in explanation.route.turns if turn.right]
    if not found:
        return None
    best = max(found, key=lambda turn: turn.probability)
    return next(one for one in explanation.evidence if one.prototype == best.prototype)


def seen(names: Sequence[str], probabilities: Tensor, *, unfamiliar: bool = False) -> str:
    """What the network says of an image, as sure as it is.

    >>> import torch
    >>> seen(["cat", "dog"], torch.tensor([0.55, 0.45]))
    'The network cannot tell whether it is cat (55%) or dog (45%).'
    """
    word, best = sureness(probabilities), most_probable(probabilities)
    said = [f"{names[label]} ({percent(float(probabilities[label]))})" for label in best]
    if unfamiliar:
        named = said if word == "toss-up" else said[:1]
        return f"The network says {' or '.join(named)}, but the image looks like nothing it knows."
    if word == "toss-up":
        return f"The network cannot tell whether it is {' or '.join(said)}."
    if word == "unsure":
        return f"The network is not sure: perhaps it is {' or '.join(said)}, perhaps something else."
    return f"The network sees {said[0]}."


def _decided(explanation: Explanation) -> str:
    """What the network says, at once what is right where it is wrong, and what it rests on."""
    target, p = _named(explanation, explanation.target)
    found, wrong = explanation.closeness, _corrected(explanation)
    unlike = found is not None and bool((found.shares <= 0).all())
    strange = bool(explanation.is_unfamiliar)
    if strange or (_is_open(explanation) and explanation.target in most_probable(explanation.probabilities)):
        said = seen(explanation.class_names, explanation.probabilities, unfamiliar=strange)
        return f"{said}{wrong} What speaks most for {target}: {_because(explanation)}."
    if explanation.target == explanation.prediction:
        though = "" if not unlike else f", though it is {_farther(target)}"
        return f"The network sees {target} ({p}), above all because {_because(explanation)}{though}.{wrong}"
    predicted, q = _named(explanation, explanation.prediction)
    said = f"The network sees {predicted} ({q}), not {target} ({p}), the class explained here.{wrong}"
    if unlike:
        return f"{said} The image is {_farther(target)}."
    return f"{said} What speaks most for {target}: {_because(explanation)}."


def _is_open(explanation: Explanation) -> bool:
    """Whether no class is much more probable than all others."""
    return sureness(explanation.probabilities) in ("toss-up", "unsure")


def _farther(name: str) -> str:
    return f"farther from all of {name}'s prototypes than training images usually are"


def _because(explanation: Explanation) -> str:
    if explanation.route is not None and explanation.route.turns:
        return _because_of_turns(explanation)
    best = deciding(explanation)
    assert best is not None
    if explanation.is_unfamiliar:
        return f"the nearest of its prototypes is number {best.prototype}"
    return f"it looks like prototype {best.prototype}"


def _because_of_turns(explanation: Explanation) -> str:
    """The surest yes, and what the image is not like."""
    assert explanation.route is not None
    turns = sorted(explanation.route.turns, key=lambda turn: -turn.probability)
    said = [
        f"something in it looks like prototype {turn.prototype} ({percent(turn.probability)} sure)"
        for turn in turns
        if turn.right
    ][:1]
    unlike = [str(turn.prototype) for turn in turns if not turn.right][:3]
    if unlike:
        many = "prototypes " if len(unlike) > 1 else "prototype "
        said.append(f"nothing in it looks like {many}{_or(unlike)}")
    return " and ".join(said)


def _or(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _where(explanation: Explanation) -> str:
    """The place of what the class map outlines, which is the map that the words stand above."""
    if adds_nothing(explanation):
        return "That comes from hardly anything in the image: an empty one would be called the same."
    where, roughly = lies(explanation.class_map), is_rough(explanation)
    named = explanation.target != explanation.prediction or is_wrong(explanation)  # "it" may be either class
    it = explanation.class_names[explanation.target] if named else "it"
    if where is not None:
        return f"{'As far as the map tells, what' if roughly else 'What'} speaks for {it} {where}."
    if lies(explanation.class_map, sign=-1) is not None:
        return f"No region is known to speak for {it}."
    return "Where in the image that comes from is not clear yet."


def _rival(explanation: Explanation) -> str:
    name = rival_of(explanation)
    label = explanation.class_names.index(name)
    subject = _rival_named(explanation, label)
    mine, other = explanation.closeness, explanation.rival_closeness
    if mine is None or other is None:
        return f"{subject} is {compared(_ahead(explanation, label))}."
    target = explanation.class_names[explanation.target]
    return f"{subject} {_support(mine, other, target, _ahead(explanation, label))}."


def _rival_named(explanation: Explanation, label: int) -> str:
    """The rival as it is introduced."""
    name, p = _named(explanation, label)
    if _is_open(explanation) and {label, explanation.target} <= set(most_probable(explanation.probabilities)):
        return name  # both were named before
    if label == explanation.prediction:
        return f"The class that it sees, {name} ({p}),"
    return f"{name} ({p})" if explanation.versus is not None else f"The next class, {name} ({p}),"


def _ahead(explanation: Explanation, rival: int) -> float:
    """By how much the explained class's log probability is above its rival's."""
    if explanation.runner_up is not None:
        return explanation.runner_up.total
    p = explanation.probabilities.double()
    return float(p[explanation.target].log() - p[rival].log())


def compared(ahead: float) -> str:
    """How probable the rival is beside a class that is `ahead` in log probability.

    >>> compared(math.log(3)), compared(0.01)
    ('3.0 times less probable', 'nearly as probable: too close to call')
    """
    factor = math.exp(min(abs(ahead), 30.0))
    if factor < CLOSE:
        return f"{'nearly as' if ahead > 0 else 'slightly more'} probable: too close to call"
    many = f"{factor:.1f}" if factor < 10 else f"{factor:,.0f}" if factor < 1e6 else "a million"
    return f"{many} times {'less' if ahead > 0 else 'more'} probable"


def _support(mine: Closeness, other: Closeness, target: str, ahead: float) -> str:
    """How much the rival is supported by its own prototypes, beside the explained class by its own. Where the
    one that is `ahead` has less of it, other things decide, and how probable the rival is comes first."""
    ours, theirs = float(mine.shares.sum()), float(other.shares.sum())
    best = int(other.shares.argmax())
    if float(other.shares[best]) <= 0:
        return "has no prototype that is nearer than in an average training image"
    how = "less" if theirs < 0.9 * ours else "about as much" if theirs < 1.1 * ours else "more"
    most = f"prototype {int(other.prototypes[best])}"
    if (how == "less") != (ahead > 0):
        return f"is {compared(ahead)}; most of its support comes from {most}"
    than = "as" if how == "about as much" else "than"
    return f"has {how} support {than} {target}, most of it from {most}"


def about_mask(explanation: Explanation) -> str:
    """A first look at shortcuts: how much of the evidence lies where the object is not."""
    share = share_outside(explanation)
    if explanation.mask is None:
        return ""
    covers = percent(float(explanation.mask.double().mean()))
    if share is None:
        return f"The dashed line is the object's border; it covers {covers} of the image."
    target = explanation.class_names[explanation.target]
    hint = " The map is rough, so that is no more than a hint." if is_rough(explanation) else ""
    return (
        f"The dashed line is the object's border. {percent(share)} of the evidence for {target} "
        f"lies outside; the object covers {covers} of the image.{hint}"
    )


def _named(explanation: Explanation, label: int) -> tuple[str, str]:
    return explanation.class_names[label], percent(float(explanation.probabilities[label]))

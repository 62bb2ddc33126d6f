"""The decision as a sum: evidence as people mean it, and the paper's complete sum for the details."""

from __future__ import annotations

from protopfaith.explanation.decomposition import Closeness, Decomposition
from protopfaith.explanation.explanation import Explanation
from protopfaith.show.bars import Bars, Sum, Term, share_bars, sum_bars
from protopfaith.show.wording.findings import stands_for
from protopfaith.show.wording.numbers import percent
from protopfaith.show.wording.outputs import rival_of, target_of

MOST_PROBABLE = 5
AVERAGE = "an average training image"
NORMALIZER = "the same for all classes"
OTHERS = "prototypes of other classes"
CALIBRATION = "calibration"


def probability_bars(explanation: Explanation) -> Bars:
    """The most probable classes, and the explained ones."""
    p, names = explanation.probabilities, explanation.class_names
    asked = [explanation.target] + ([] if explanation.versus is None else [explanation.versus])
    ranked = p.argsort(descending=True).tolist()
    shown = ranked[:MOST_PROBABLE]
    shown = sorted({*shown[: MOST_PROBABLE - len(set(asked) - set(shown))], *asked}, key=ranked.index)
    caption = "Probabilities, calibrated" if explanation.calibrated else "Probabilities, not calibrated"
    if explanation.findings:
        caption += ", each of its own"
    return share_bars(caption, [(names[c], float(p[c]), percent(float(p[c]))) for c in shown])


def evidence_bars(explanation: Explanation) -> list[Bars]:
    """How much closer this image is to the prototypes of the class, and of its rival, than training images
    are on average; both on one scale. Empty where the average is not known."""
    found = [
        (name, one)
        for name, one in (
            (target_of(explanation), explanation.closeness),
            (rival_of(explanation), explanation.rival_closeness),
        )
        if one is not None
    ]
    total = f"sum: {_score(explanation)}"
    if explanation.findings:
        total = "sum: log odds of its presence"
    shared = _normalizer(explanation)
    return sum_bars(
        *(
            Sum(
                f"Evidence for {name}",
                [*_terms(explanation, one), *shared],
                Term(total, one.total + sum(term.value for term in shared)),
            )
            for name, one in found
        )
    )


def _normalizer(explanation: Explanation) -> list[Term]:
    """What is missing from the score above the mean to the log probability, where that is explained."""
    complete, found = explanation.decomposition, explanation.closeness
    if explanation.output != "log_probability" or complete is None or found is None:
        return []
    detail = "What makes probabilities add up to one: it grows with the scores of all classes."
    return [Term(NORMALIZER, complete.total - found.total, detail, neutral=True)]


def complete_sums(explanation: Explanation) -> list[Bars]:
    """The log probability as the paper has it, and the difference to the rival: nothing is left out. Empty
    where a decision is no sum."""
    tables: list[Bars] = []
    if explanation.decomposition is None or explanation.runner_up is None:
        return tables
    if explanation.findings:
        odds = f"The log odds of {target_of(explanation)}"
        return [_complete(explanation, explanation.decomposition, odds)]
    if explanation.decomposition.versus is None:
        tables.append(_complete(explanation, explanation.decomposition, f"log P({target_of(explanation)})"))
    label = f"log P({target_of(explanation)}) − log P({rival_of(explanation)})"
    return [*tables, _complete(explanation, explanation.runner_up, label)]


def _terms(explanation: Explanation, found: Closeness) -> list[Term]:
    """Most evidence first; what all images share has no color."""
    pairs = zip(found.prototypes.tolist(), found.shares.tolist(), strict=True)
    ranked = sorted(pairs, key=lambda pair: -pair[1])
    average = Term(AVERAGE, found.average, "What an average training image gets.", neutral=True)
    if explanation.findings:
        weights = {one.prototype: one.weight for one in explanation.evidence}
        name = target_of(explanation)
        named = {p: f"prototype {p} ({stands_for(name, weights.get(p, 0.0))})" for p, _ in ranked}
        return [*(Term(named[p], share, _speaks(share, name)) for p, share in ranked), average]
    return [
        *(Term(f"prototype {prototype}", share, _closer(share)) for prototype, share in ranked),
        Term(OTHERS, found.others, "How near the image is to the prototypes of all other classes."),
        average,
    ]


def _speaks(share: float, name: str) -> str:
    side = "for" if share > 0 else "against"
    return f"Compared with training images on average, this prototype speaks {side} {name}."


def _closer(share: float) -> str:
    side = "closer to" if share > 0 else "farther from"
    return f"The image is {side} this prototype than training images are on average."


def _score(explanation: Explanation) -> str:
    words = {
        "margin": "score above the mean of all classes",
        "logit": "score",
        "versus": "score above the other's",
        "log_probability": "log probability",
    }
    return words[explanation.output]


def _complete(explanation: Explanation, sum_: Decomposition, caption: str) -> Bars:
    terms = [
        Term(_prototype_name(explanation, sum_, prototype), term)
        for prototype, term in zip(sum_.prototypes.tolist(), sum_.weighted.tolist(), strict=True)
    ]
    if explanation.findings:  # a finding reads its own prototypes alone
        if sum_.log_normalizer:
            terms.append(
                Term(CALIBRATION, -sum_.log_normalizer, "How often it is there, by validation images.")
            )
    elif sum_.versus is None:
        # Both are large and nearly cancel; apart they would dwarf all that tells prototypes from one another.
        detail = f"other classes' prototypes {sum_.rest:+.4g}, normalizer {-sum_.log_normalizer:+.4g}"
        terms.append(Term("all other classes, normalized", sum_.rest - sum_.log_normalizer, detail))
    elif len(explanation.class_names) > 2:  # of two classes both stand in the rows above
        terms.append(Term(OTHERS, sum_.rest))
    return sum_bars(Sum(f"{caption} is the sum of", terms, Term("sum", sum_.total)))[0]


def _prototype_name(explanation: Explanation, sum_: Decomposition, prototype: int) -> str:
    if sum_.versus is None:
        return f"prototype {prototype}"
    owners = {one.prototype: one.class_name for one in explanation.evidence}
    return f"prototype {prototype} ({owners.get(prototype, explanation.class_names[sum_.versus])})"

"""What a map explains: its name, what it adds up to, and what it is relative to."""

from __future__ import annotations

from protopfaith.explanation.explanation import Explanation
from protopfaith.explanation.regions import RegionValues
from protopfaith.show.wording.numbers import percent

ORDER = ("margin", "versus", "log_probability", "logit")
SAME = 0.6  # probability from which on the empty image is called what is explained: half is a toss-up of two
NOTHING = 0.5  # of a score: regions that together change less hardly change a probability
UNCHANGED = 5e-4  # of what is explained: less is called no change


def target_of(explanation: Explanation) -> str:
    """The class that is explained."""
    return explanation.class_names[explanation.target]


def rival_of(explanation: Explanation) -> str:
    """The class that the target is compared with."""
    known = explanation.rival
    if known is None and explanation.runner_up is not None:  # explanations of earlier versions
        known = explanation.runner_up.versus
    return explanation.class_names[known or 0]


def own_map(explanation: Explanation) -> str:
    """What the network's own explanation of a prototype is called."""
    return str(explanation.network.get("own_map", "ProtoPNet's own map"))


def maps_by_output(explanation: Explanation) -> dict[str, RegionValues]:
    """The maps that there are, the one that was asked for first."""
    others = explanation.other_maps
    return {explanation.output: explanation.class_map} | {k: others[k] for k in ORDER if k in others}


def output_name(explanation: Explanation, output: str) -> str:
    """What the switch says."""
    target = target_of(explanation)
    if explanation.findings:
        return f"for {target}"
    return {
        "margin": f"for {target}",
        "versus": f"rather than {rival_of(explanation)}",
        "log_probability": "its log probability",
        "logit": "its score alone",
    }[output]


def where_heading(explanation: Explanation) -> str:
    """What stands above the map: a class that was not decided for is no decision."""
    if explanation.findings or explanation.target == explanation.prediction:
        return "Where the decision comes from"
    return f"What speaks for {target_of(explanation)}, and against it"


def in_favor(explanation: Explanation, output: str) -> str:
    """What a positive value speaks for."""
    target = target_of(explanation)
    return f"{target} rather than {rival_of(explanation)}" if output == "versus" else target


def quantity(explanation: Explanation, output: str) -> str:
    """What the map adds up to, as the subject of a sentence."""
    target = target_of(explanation)
    score = "score" if explanation.decomposition is not None else "log probability"
    return {
        "margin": f"the score of {target}, above the mean of all classes,",
        "versus": f"the {score} of {target}, above that of {rival_of(explanation)},",
        "log_probability": f"the log probability of {target}",
        "logit": f"the score of {target}",
    }[output]


def adds_up(explanation: Explanation, output: str, regions: RegionValues) -> str:
    """One sentence on what the map adds up to, and a caution where the empty image says much the same."""
    total = float(regions.sign * regions.values.sum())
    more, what = "higher" if total >= 0 else "lower", quantity(explanation, output)
    said = f"{total:+.3g}: so much {more} is {what} on this image than on the empty one"
    if abs(total) < UNCHANGED:
        said = f"nothing: {what} is the same on this image as on the empty one"
    said = f"All regions together add up to {said}."
    return f"{said} {caution(explanation)}".rstrip()


def empty_share(explanation: Explanation) -> float | None:
    """How probable the explained class is in an empty image, where that would be called so; else None."""
    p = explanation.empty_probabilities
    return None if p is None or float(p[explanation.target]) < SAME else float(p[explanation.target])


def caution(explanation: Explanation) -> str:
    """What a reader must know where an empty image would be called the same; else nothing."""
    p = empty_share(explanation)
    if p is None:
        return ""
    called = f"{target_of(explanation)}, too ({percent(p)})"
    return f"Caution: an empty image would be called {called}; the map shows only what changes from there."


def against(explanation: Explanation) -> str:
    """Why a class was decided for although all regions together speak against it; else nothing."""
    regions, p = explanation.class_map, explanation.empty_probabilities
    decided = explanation.target == explanation.prediction and explanation.output != "versus"
    decided = decided and not explanation.findings
    if not decided or p is None or adds_nothing(explanation) or float(regions.evidence.sum()) >= 0:
        return ""
    target = explanation.target
    there, here = float(p[target]), float(explanation.probabilities[target])
    if there > here:
        return (
            " All regions together speak against it: an empty image would be called "
            f"{target_of(explanation)} with even more certainty ({percent(there)}), and this one takes "
            "some of that back."
        )
    return (
        " All regions together lower its score, compared with an empty image; it is the highest all the same."
    )


def adds_nothing(explanation: Explanation) -> bool:
    """Whether the image hardly changes what an empty one would be called, too."""
    changed = float(explanation.class_map.values.abs().sum())
    return bool(caution(explanation)) and changed < NOTHING


def about_empty(explanation: Explanation) -> str:
    """What every map is relative to, for the details."""
    label, p = explanation.empty_prediction, explanation.empty_probabilities
    if label is None or p is None:
        return ""
    if explanation.findings:
        there, name = percent(float(p[explanation.target])), target_of(explanation)
        return f"On the empty image (baseline {explanation.baseline}) the probability of {name} is {there}."
    name = explanation.class_names[label]
    return f"The empty image (baseline {explanation.baseline}) counts as {name} ({percent(float(p[label]))})."

"""The answer in a sentence or two."""

from __future__ import annotations

from protopfaith.explanation.explanation import Explanation
from protopfaith.show.wording.numbers import percent


def lead(explanation: Explanation) -> str:
    """What the network sees, and which prototype contributes most to it."""
    names = explanation.class_names
    predicted, target = names[explanation.prediction], names[explanation.target]
    p = float(explanation.probabilities[explanation.target])
    best = explanation.evidence[0]
    said = [
        f"The network sees {predicted} in this image"
        f" ({percent(float(explanation.probabilities[explanation.prediction]))})."
    ]
    if explanation.target != explanation.prediction:
        said.append(f"{target}, the class explained here, gets {percent(p)}.")
    said.append(
        f"Of its prototypes for {target}, prototype {best.prototype} contributes most: "
        f"this image is at a distance of {best.distance:.2f} from it."
    )
    return " ".join(said)

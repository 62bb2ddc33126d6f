"""Why this class, and what is this prototype? Answers that a person can read, check and pass on.

>>> from protopfaith.explanation import explain
>>> explanation = explain("runs/birds", "bird.png", precision=0.1)  # doctest: +SKIP
>>> explanation.report("bird.html")  # doctest: +SKIP
"""

from protopfaith.explanation.contribution import Decomposition, class_row, decompose, paper_scores
from protopfaith.explanation.explainer import Explainer, SourceSide
from protopfaith.explanation.local import (
    Explanation,
    PrototypeEvidence,
    SecondBaseline,
    explain,
    explanation_steps,
)
from protopfaith.explanation.playing import Settings
from protopfaith.explanation.protopnet_map import crop_box, protopnet_maps
from protopfaith.explanation.regions import Agreement, RegionValues

__all__ = [
    "Agreement",
    "Decomposition",
    "Explainer",
    "Explanation",
    "PrototypeEvidence",
    "RegionValues",
    "SecondBaseline",
    "Settings",
    "SourceSide",
    "class_row",
    "crop_box",
    "decompose",
    "explain",
    "explanation_steps",
    "paper_scores",
    "protopnet_maps",
]

"""Prototype networks, and explanations of them that can be checked.

The names below are all that most programs need. They are loaded when they are first used, so that
`import protopfaith` takes no time:

>>> import protopfaith as pf
>>> explanation = pf.explain("runs/birds", "bird.png", precision=0.1)
>>> explanation.report("bird.html").name
'bird.html'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protopfaith._version import __version__
from protopfaith.lazy import lazily

if TYPE_CHECKING:
    from protopfaith.conversion import convert
    from protopfaith.errors import ProtoPFaithError
    from protopfaith.evaluation import faithfulness
    from protopfaith.explanation import Explainer, explain, explain_function
    from protopfaith.moments import Gaussian
    from protopfaith.network import ProtoPNet
    from protopfaith.shapley import Attribution, Game, Players, estimate
    from protopfaith.training import Run, train

__all__ = [
    "Attribution",
    "Explainer",
    "Game",
    "Gaussian",
    "Players",
    "ProtoPFaithError",
    "ProtoPNet",
    "Run",
    "__version__",
    "convert",
    "estimate",
    "explain",
    "explain_function",
    "faithfulness",
    "train",
]

_HOMES = {
    "Attribution": "shapley",
    "Explainer": "explanation",
    "Game": "shapley",
    "Gaussian": "moments",
    "Players": "shapley",
    "ProtoPFaithError": "errors",
    "ProtoPNet": "network",
    "Run": "training",
    "convert": "conversion",
    "estimate": "shapley",
    "explain": "explanation",
    "explain_function": "explanation",
    "faithfulness": "evaluation",
    "train": "training",
}

__getattr__ = lazily(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)

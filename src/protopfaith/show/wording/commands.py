"""Commands that a reader can type, and the options that made an explanation."""

from __future__ import annotations

import math
import shlex

from protopfaith.explanation.explanation import Explanation

AIM = 0.15  # relative error that a sharper map is expected to have


def sharper(explanation: Explanation) -> str:
    """The command that would make a rough map sharper: errors fall with the root of the budget."""
    factor = (explanation.precision / AIM) ** 2
    budget = 2 ** math.ceil(math.log2(max(explanation.evaluations, 2) * factor))
    options = {**asked(explanation), "--budget": str(budget)}
    options.pop("--precision", None)
    words = [part for name, value in options.items() for part in (name, value)]
    return shlex.join(["protopfaith", "explain", "RUN", explanation.name, *words])


def asked(explanation: Explanation) -> dict[str, str]:
    """The options of `protopfaith explain` that differ from the usual ones."""
    settings, options = explanation.settings, {}
    if settings.get("players_asked") not in (None, "16"):
        options["--players"] = str(settings["players_asked"])
    if explanation.precision_asked is not None:
        options["--precision"] = f"{explanation.precision_asked:g}"
    if explanation.target != explanation.prediction:
        options["--class"] = explanation.class_names[explanation.target]
    if explanation.versus is not None:
        options["--versus"] = explanation.class_names[explanation.versus]
    if explanation.baseline != "zero":
        options["--baseline"] = explanation.baseline
    if explanation.second is not None:
        options["--second-baseline"] = explanation.second.baseline
    if settings.get("seed"):
        options["--seed"] = str(settings["seed"])
    return options

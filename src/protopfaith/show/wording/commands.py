"""Commands that a reader can type, and the options that made an explanation."""

from __future__ import annotations

import math
import shlex

from protopfaith.explanation.explanation import Explanation

AIM = 0.15  # relative error that a sharper map is expected to have
MOST = 32  # times sharper; beyond it nobody waits for the budget


def sharper(explanation: Explanation, error: float) -> str:
    """The command that would make a map with that relative `error` sharper: errors fall with the root of the
    budget."""
    times = error / AIM if math.isfinite(error) else MOST  # of a map of zeros no relative error is known
    factor = min(max(times, 1.0), MOST) ** 2
    budget = 2 ** math.ceil(math.log2(max(explanation.evaluations, 2) * factor))
    options = {**asked(explanation), "--budget": str(budget)}
    options.pop("--precision", None)
    words = [part for name, value in options.items() for part in (name, value)]
    words += [*_estimator_options(explanation), *_flags(explanation)]
    return shlex.join(["protopfaith", "explain", "RUN", explanation.path or explanation.name, *words])


def asked(explanation: Explanation) -> dict[str, str]:
    """The options of `protopfaith explain` that differ from the usual ones."""
    settings, names = explanation.settings, explanation.class_names
    players, estimator = settings.get("players_asked"), settings.get("estimator", "default")
    typed = None if players is None or str(players).startswith("tensor") else str(players)
    precision, versus, second = explanation.precision_asked, explanation.versus, explanation.second
    options = {
        "--players": typed,
        "--precision": None if precision is None else f"{precision:g}",
        "--estimator": None if estimator == "default" else estimator,
        "--class": None if explanation.target == explanation.prediction else names[explanation.target],
        "--versus": None if versus is None else names[versus],
        "--explain": settings.get("output") if versus is None else None,
        "--baseline": None if explanation.baseline == "zero" else _typed(explanation.baseline),
        "--second-baseline": None if second is None else _typed(second.baseline),
        "--mask": settings.get("mask"),
        "--seed": str(settings["seed"]) if settings.get("seed") else None,
    }
    return {name: value for name, value in options.items() if value is not None}


def _estimator_options(explanation: Explanation) -> list[str]:
    """The estimator's own, one `--option` each."""
    given = explanation.settings.get("options", {})
    return [word for name, value in given.items() for word in ("--option", f"{name}={value}")]


def _flags(explanation: Explanation) -> list[str]:
    """What was left out: source images, or only the maps of them."""
    if explanation.settings.get("sources", True):
        return []
    return ["--quick" if explanation.settings.get("source_parts") else "--no-sources"]


def _typed(baseline: str) -> str:
    """A baseline's description as the option takes it.

    >>> _typed("blur (sigma 8)"), _typed("blur")
    ('blur:8', 'blur')
    """
    name, _, rest = baseline.partition(" ")
    number = rest.strip("()").rpartition(" ")[2]
    return f"{name}:{number}" if number else name

"""Estimators by name, with what the others must know of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from protopfaith.registry import Registry
from protopfaith.shapley.attribution import Attribution

EstimatorFunction = Callable[..., Attribution]


@dataclass(frozen=True)
class Traits:
    """What an estimator says about itself where it is registered. All have defaults that are safe: an
    estimator that says nothing is asked once, for everything, and believed no more than its numbers say.

    Args:
        description: how values come about, for people: "They were ..."
        evaluates: it evaluates the game on coalitions. Otherwise its evaluations are passes of its own kind,
            on random variables for example, of which only it can report progress
        per_output: the cost grows with the outputs, so that it is asked for few of them
        full_precision: it needs the function in float32: variances and small differences do not
            survive autocast

    >>> Traits(description="guessed").evaluates
    True
    """

    description: str = "estimated"
    evaluates: bool = True
    per_output: bool = False
    full_precision: bool = False


def checked_by(check: Callable[..., None]) -> Callable[[EstimatorFunction], EstimatorFunction]:
    """An estimator with a check that can be called alone, before any work.

    Args:
        check: gets the game, the plan (`budget`, `precision`) and the estimator's options, and raises if the
            estimator cannot work with them; it evaluates nothing. The estimator calls it itself, too.
    """

    def attach(estimator: EstimatorFunction) -> EstimatorFunction:
        estimator.check = check  # type: ignore[attr-defined]
        return estimator

    return attach


class Estimators(Registry[EstimatorFunction]):
    """A registry whose entries have `Traits`.

    >>> KNOWN = Estimators("estimator")
    >>> @KNOWN.register("guess", description="guessed", per_output=True)
    ... def guess(game, **plan): ...
    >>> KNOWN.traits("guess").per_output, KNOWN.traits("guess").evaluates
    (True, True)
    """

    def __init__(self, kind: str):
        super().__init__(kind)
        self._traits: dict[str, Traits] = {}

    def register(self, name: str, **traits: Any) -> Callable[[EstimatorFunction], EstimatorFunction]:
        """Registers a function under `name`; the keywords are those of `Traits`."""
        declared, add = Traits(**traits), super().register(name)

        def add_both(function: EstimatorFunction) -> EstimatorFunction:
            add(function)
            self._traits[name] = declared
            return function

        return add_both

    def traits(self, name: str) -> Traits:
        """What the estimator says about itself; nothing but the defaults where the name is not known, as in a
        result of an estimator that is registered elsewhere."""
        return self._traits.get(name, Traits()) if isinstance(name, str) and name in self else Traits()

"""The game on a decision played in parts: each goes on where the last one ended."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property

from torch import Tensor

from protopfaith.explanation.decision import Decision
from protopfaith.explanation.game import (
    batch_key,
    decision_function,
    exact_total,
    open_game,
    output_names,
    with_exact_totals,
)
from protopfaith.explanation.settings import Settings
from protopfaith.network import FusedProtoPNet
from protopfaith.shapley import Attribution, Game, Players, estimate


class ResumableGame:
    """One game, played a little further by every call of `play`. It is opened by the first one, so that a
    decision does not wait for it.

    Args:
        network: the network that decided, as games play it.
        decision: what it said.
        settings: how to play, resolved (`Settings.on`); the estimator must be one that samples.
        players: the regions of the image.

    >>> from protopfaith.explanation import Explainer
    >>> from protopfaith.explanation.decision import decide
    >>> import torch
    >>> from protopfaith.network import ProtoPNet
    >>> explainer = Explainer(ProtoPNet("small", ["cat", "dog"], 1, 8).eval())
    >>> decision = decide(explainer.model, explainer.open(torch.zeros(3, 32, 32)))
    >>> settings = Settings().on("cpu", (32, 32))
    >>> resumable = ResumableGame(explainer.fused, decision, settings, Players.windows((32, 32), 8))
    >>> resumable.play(100).evaluations, resumable.play(28).evaluations
    (100, 128)
    """

    def __init__(self, network: FusedProtoPNet, decision: Decision, settings: Settings, players: Players):
        names = output_names(decision, settings)
        count = len(network.prototypes)
        self.settings, self.players = settings, players
        self.driving = [*decision.named, count + names.index(decision.output)]
        self.function = decision_function(network, decision, names)
        self.seconds = 0.0  # that evaluations took; on a GPU less, as nobody waits for them one by one
        self._image = decision.picture.input
        self._batches, self._key = network.batch_sizes, batch_key(self._image, settings, names)
        self._so_far: Attribution | None = None

    @cached_property
    def game(self) -> Game:
        """How many images fit into a batch is measured by the first game of a network alone."""
        size = self.settings.batch_size or self._batches.get(self._key)
        settings = replace(self.settings, batch_size=size)
        return open_game(self._timed, self._image, settings, self.players, check=False)

    @cached_property
    def total(self) -> Tensor:
        """What the players share without the rounding of autocast, (outputs,)."""
        return exact_total(self.function, self.game)

    @property
    def evaluations(self) -> int:
        """Those made so far."""
        return 0 if self._so_far is None else self._so_far.evaluations

    @property
    def result(self) -> Attribution | None:
        """What is known so far, as explanations hold it; None before the first part."""
        found = self._so_far
        if found is not None and self.settings.autocast is not None:
            found = with_exact_totals(found, self.total, self.driving)
        return None if found is None else found.without_state()

    def play(self, evaluations: int, precision: float | None = None) -> Attribution:
        """Plays on: so many evaluations more, or fewer where the precision is reached before.

        Args:
            evaluations: of the network at most, in this part.
            precision: the relative error at which to stop.

        Returns:
            What is known now.
        """
        self._so_far = estimate(
            self.game,
            self.settings.estimator,
            budget=self.evaluations + evaluations if self.settings.traits.planned else None,
            precision=precision,
            outputs=self.driving,
            seed=self.settings.seed,
            resume=self._so_far,
            **self.settings.options,
        )
        self._batches.setdefault(self._key, self.game.batch_size)
        self._so_far = replace(self._so_far, reached=precision is None or self._so_far.precision <= precision)
        found = self.result
        assert found is not None
        return found

    def _timed(self, images: Tensor) -> Tensor:
        start = time.perf_counter()
        outputs = self.function(images)
        self.seconds += time.perf_counter() - start
        return outputs

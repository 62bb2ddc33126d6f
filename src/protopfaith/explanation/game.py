"""One game on one image, whose outputs are the distances of all prototypes and, if wanted, a class's
logit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import torch
from torch import Tensor

from protopfaith.explanation.rounding import with_exact_totals
from protopfaith.explanation.settings import BaselineLike, Settings, make_players, usual_budget, with_budget
from protopfaith.network import ProtoPNet
from protopfaith.shapley import Attribution, Game, Players, estimate

COARSE_BUDGET = 512

Progress = Callable[[int, int], None]  # evaluations done, evaluations expected


def distances_and_logit(
    model: ProtoPNet, prototypes: Sequence[int] | None = None, row: Tensor | None = None
) -> Callable[[Tensor], Tensor]:
    """The function of images that a game is played on: distances (of some prototypes), then the weighted
    sum of the similarities of all of them, with the weights `row` (P,)."""
    chosen = None if prototypes is None else torch.tensor(list(prototypes), device=model.prototypes.device)

    def function(images: Tensor) -> Tensor:
        if isinstance(images, Tensor) and images.is_cuda:  # the same numbers, faster than rows of pixels
            images = images.contiguous(memory_format=torch.channels_last)
        distances = model.distances(images)
        outputs = [distances if chosen is None else distances.index_select(1, chosen)]
        if row is not None:
            outputs.append(model.logits(distances, row[None].to(model.prototypes)))
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs, 1)

    return function


def play(
    function: Callable[[Tensor], Tensor],
    image: Tensor,
    settings: Settings,
    *,
    players: Players | None = None,
    driving: Sequence[int] | None = None,
    progress: Progress | None = None,
    check: bool = True,
) -> Attribution:
    """Shapley values of all outputs; the precision is that of the outputs `driving` alone (all by
    default)."""
    settings = with_budget(settings, image.device)
    # With a precision alone a first guess, before anything is known of the errors.
    meter = _Meter(progress, settings.budget or usual_budget(image.device))
    game = Game(
        meter.counting(function),
        image,
        players or make_players(settings.players, image),
        settings.baseline,
        batch_size=settings.batch_size,
        memory=settings.memory,
        autocast=settings.autocast,
        check=check,
    )
    driving = list(range(game.n_outputs)) if driving is None else list(driving)
    result = estimate(
        game,
        settings.estimator,
        budget=settings.budget,
        precision=settings.precision,
        outputs=driving,
        seed=settings.seed,
        progress=meter.estimated,
        **settings.options,
    )
    if not result.reached and bool(result.values.isnan().any()):
        raise KeyboardInterrupt  # an interrupted estimator gives what it has; a map needs all of it
    meter.finish()
    if settings.autocast is not None:
        result = with_exact_totals(result, function, game, driving)
    return result.without_state()


class _RehearsedError(Exception):
    """The estimator begins: all that could be wrong with its settings has been checked."""


@contextmanager
def rehearsal() -> Iterator[Callable[[Tensor], Tensor]]:
    """A function for a game, to be played inside this context, without asking the network.

    It answers once, for all players and for none, and ends the context where the first coalition is
    evaluated: players, baselines, budget and the estimator's options have been checked by then, each where
    it is used.
    """
    answered = False

    def function(images: Tensor) -> Tensor:
        nonlocal answered
        if answered:
            raise _RehearsedError
        answered = True
        return images.new_zeros(len(images), 1)

    with suppress(_RehearsedError):
        yield function


def rehearse(settings: Settings, image: Tensor, second_baseline: BaselineLike | None = None) -> None:
    """Complains about settings that are wrong for every image of this size."""
    players = make_players(settings.players, image)
    if isinstance(settings.players, str) and players.kind.startswith("superpixels"):
        # How many there are depends on the image; two regions suit every estimator.
        players = Players.windows(image.shape[-2:], (image.shape[-2], math.ceil(image.shape[-1] / 2)))
    plans = [settings]
    if second_baseline is not None:
        plans.append(replace(settings, baseline=second_baseline))
    for plan in plans:
        with rehearsal() as function:
            play(function, image, plan, players=players, check=False)


def spread_outputs(result: Attribution, places: Sequence[int], count: int) -> Attribution:
    """An attribution of `count` outputs, of which those at `places` are known and the others NaN."""
    index = torch.tensor(list(places))

    def spread(rows: Tensor) -> Tensor:
        return rows.new_full((count, *rows.shape[1:]), torch.nan).index_copy_(0, index, rows)

    return replace(
        result,
        values=spread(result.values),
        standard_errors=spread(result.standard_errors),
        completeness_gap=spread(result.completeness_gap),
        total=spread(result.total),
    )


class _Meter:
    """Counts images as the network sees them, whatever the estimator: progress moves with every batch."""

    def __init__(self, progress: Progress | None, expected: int):
        self.progress, self.expected, self.done = progress, expected, 0

    def counting(self, function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        if self.progress is None:
            return function

        def counted(images: Tensor) -> Tensor:
            outputs = function(images)
            if isinstance(images, Tensor):  # moment propagation passes random variables
                self.done += len(images)
                self._tell(self.done)
            return outputs

        return counted

    def estimated(self, done: int, expected: int) -> None:
        """What the estimator says itself: how much there is to do, and moment passes."""
        self.expected = expected
        self._tell(max(self.done, done))

    def finish(self) -> None:
        self._tell(self.expected)

    def _tell(self, done: int) -> None:
        if self.progress is not None:
            self.progress(min(done, self.expected), self.expected)

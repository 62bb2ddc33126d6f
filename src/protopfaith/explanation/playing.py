"""One game on one image, whose outputs are the distances of all prototypes and, if wanted, a class's
logit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import linear

from protopfaith.explanation.contribution import similarities
from protopfaith.explanation.rounding import with_exact_totals
from protopfaith.explanation.settings import BaselineLike, Settings, make_players, usual_budget, with_budget
from protopfaith.network import ProtoPNet
from protopfaith.precision import full_precision
from protopfaith.shapley import Attribution, Game, Players, estimate, relative_error
from protopfaith.shapley.estimation import LARGEST_BUDGET
from protopfaith.shapley.moment_passes import MOMENTS

COARSE_BUDGET = 512
FIRST_ROUND = 1024
PER_PLAYER = 3  # evaluations in the first round at least: some estimators have no result for two
# Estimators that do all of their work in one go: their results are not continued round by round.
SINGLE_PASS = ("exact", *MOMENTS)

Progress = Callable[[int, int], None]  # evaluations done, evaluations expected


def distances_and_logit(
    model: ProtoPNet, prototypes: Sequence[int] | None = None, row: Tensor | None = None
) -> Callable[[Tensor], Tensor]:
    """The function of images that a game is played on: distances (of some prototypes), then the weighted
    sum of the similarities of all of them, with the weights ``row`` (P,)."""
    chosen = None if prototypes is None else torch.tensor(list(prototypes), device=model.prototypes.device)

    def function(images: Tensor) -> Tensor:
        if isinstance(images, Tensor) and images.is_cuda:  # the same numbers, faster than rows of pixels
            images = images.contiguous(memory_format=torch.channels_last)
        distances = model.distances(images)
        outputs = [distances if chosen is None else distances.index_select(1, chosen)]
        if row is not None:
            # A logit is a small difference of large sums: rounded products would leave nothing of it.
            with full_precision(model.prototypes.device.type):
                outputs.append(linear(similarities(model, distances), row[None].to(model.prototypes)))
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
    """Shapley values of all outputs; the precision is that of the outputs ``driving`` alone (all by
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
    if settings.method in SINGLE_PASS or settings.precision is None or game.n_players == 1:
        result = _in_one_go(game, settings, meter)
    else:
        result = _until_precise(game, settings, settings.precision, driving, meter)
    meter.finish()
    if settings.autocast is not None:
        result = with_exact_totals(result, function, game, driving)
    if settings.method in SINGLE_PASS:
        return result.without_state()
    error = relative_error(result.values[driving], result.standard_errors[driving])
    reached = settings.precision is None or error <= settings.precision
    return replace(result, precision=error, reached=reached, state=None)


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
    """An attribution of ``count`` outputs, of which those at ``places`` are known and the others NaN."""
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
                self._tell(min(self.done, self.expected))
            return outputs

        return counted

    def passes(self, done: int, expected: int) -> None:
        """Moment passes, which the estimator counts itself."""
        self.expected = expected
        self._tell(done)

    def finish(self) -> None:
        self._tell(self.expected)

    def _tell(self, done: int) -> None:
        if self.progress is not None:
            self.progress(done, self.expected)


def _in_one_go(game: Game, settings: Settings, meter: _Meter) -> Attribution:
    moments = settings.method in MOMENTS
    result = estimate(
        game,
        settings.estimator,
        budget=settings.budget,
        precision=settings.precision,
        seed=settings.seed,
        progress=meter.passes if moments else None,
        **settings.options,
    )
    if moments and bool(result.values.isnan().any()):
        raise KeyboardInterrupt  # an interrupted estimator gives what it has; a map needs all of it
    return result


def _until_precise(
    game: Game, settings: Settings, precision: float, driving: list[int], meter: _Meter
) -> Attribution:
    """Rounds of evaluations; each asks for as many as the last one says are needed.

    Errors fall with the square root of the evaluations, which also gives an honest estimate of the time left.
    """
    most = settings.budget or LARGEST_BUDGET
    goal = min(max(FIRST_ROUND, PER_PLAYER * game.n_players), most)
    result: Attribution | None = None
    while True:
        result = estimate(
            game,
            settings.estimator,
            budget=goal,
            seed=settings.seed,
            resume=result,
            **settings.options,
        )
        error = relative_error(result.values[driving], result.standard_errors[driving])
        if error <= precision or goal >= most:
            return result
        wanted = goal * min((error / precision) ** 2, LARGEST_BUDGET)
        meter.expected = min(math.ceil(1.05 * wanted), most)
        # No more than four times as many at once: early standard errors are rough themselves.
        goal = min(max(meter.expected, math.ceil(1.25 * goal)), 4 * goal, most)

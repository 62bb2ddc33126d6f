"""The game: its outputs are the distances of all prototypes and what is explained."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from protopfaith.dtypes import unrounded
from protopfaith.explanation.decision import Decision, finding_output
from protopfaith.explanation.settings import Settings, make_players, usual_budget
from protopfaith.listening import passing_through
from protopfaith.network import FusedProtoPNet, PrototypeNetwork
from protopfaith.shapley import Attribution, Game, Players, check_estimate, estimate
from protopfaith.shapley.attribution import redistribute
from protopfaith.specs import OUTPUTS

MOST_FINDINGS = 64  # that have maps of their own beside the explained one
ROUNDING = "rounding"  # among the options of an attribution: what autocast changed

Progress = Callable[[int, int], None]  # evaluations done, evaluations expected


def play_decision(
    network: FusedProtoPNet,
    decision: Decision,
    settings: Settings,
    *,
    players: Players | None = None,
    progress: Progress | None = None,
) -> Attribution:
    """The game on all distances, on what is explained, and on what else could be (see `output_names`). What
    is shown decides when to stop.

    Args:
        network: the network that decided, as games play it
        decision: what it said
        settings: how to play
        players: the regions of the image; by default those of the settings
        progress: gets (evaluations done, evaluations expected)
    """
    count, names = len(network.prototypes), output_names(decision, settings)
    places = [*decision.named, count + names.index(decision.output)]
    alone = settings.traits.per_output  # only what is shown is computed, since each output costs
    function = decision_function(network, decision, names, decision.named if alone else None)
    # Not checked whether it repeats: the explainer's network is in evaluation mode, and the difference of two
    # logits keeps the rounding of large sums, which in 16 bits may look like a random function.
    image = decision.picture.input
    # How many images fit is the same for all of one size: measured for the first one only.
    known, same = network.batch_sizes, batch_key(image, settings, names)
    found = play(
        function,
        image,
        settings if settings.batch_size is not None else replace(settings, batch_size=known.get(same)),
        players=players,
        driving=list(range(len(places))) if alone else places,
        progress=progress,
        check=False,
        on_batch_size=lambda size: known.setdefault(same, size),
    )
    return _spread_outputs(found, places, count + len(names)) if alone else found


def output_names(decision: Decision, settings: Settings) -> list[str]:
    """What follows the distances among the outputs of `play_decision`: what is explained and, where it costs
    nothing, what else could be (moment propagation has no rule for a log probability, which is the last)."""
    if settings.traits.per_output:
        return [decision.output]
    if not decision.adds_up:
        return ["versus", "log_probability"]
    if decision.outcome == "several":
        return ["logit", *(finding_output(number) for number in range(len(decision.logits))[:MOST_FINDINGS])]
    return [name for name in OUTPUTS if settings.traits.evaluates or name != "log_probability"]


def decision_function(
    network: FusedProtoPNet, decision: Decision, names: Sequence[str], prototypes: Sequence[int] | None = None
) -> Callable[[Tensor], Tensor]:
    """The function that a game on a decision is played on.

    Args:
        network: the network that decided, as games play it
        decision: what it said
        names: of the outputs that follow the distances, the log probability last
        prototypes: whose distances are outputs; all by default
    """
    linear = [name for name in names if name != "log_probability"]
    rows = of_logits = None
    if linear and decision.adds_up:
        rows = torch.stack([decision.row(network.model, name) for name in linear])
    elif linear:
        of_logits = torch.stack([decision.class_weights(name) for name in linear])
    return distances_and_outputs(
        network,
        prototypes,
        rows,
        of_logits=of_logits,
        log_probability=decision.target if "log_probability" in names else None,
        temperature=decision.temperature or 1.0,
    )


def distances_and_outputs(
    model: PrototypeNetwork | FusedProtoPNet,
    prototypes: Sequence[int] | None = None,
    rows: Tensor | None = None,
    *,
    of_logits: Tensor | None = None,
    log_probability: int | None = None,
    temperature: float = 1.0,
) -> Callable[[Tensor], Tensor]:
    """The function of images that a game is played on.

    Args:
        model: the network
        prototypes: whose distances are its outputs; all by default
        rows: weights (m, P); the weighted sums of all similarities are m more outputs
        of_logits: weights (m, C); the weighted sums of all logits are m more outputs
        log_probability: a class, whose log probability is one more output
        temperature: what logits are divided by for that
    """
    chosen = None if prototypes is None else torch.tensor(list(prototypes), device=model.prototypes.device)
    rows = None if rows is None else rows.to(model.prototypes)
    of_logits = None if of_logits is None else of_logits.to(model.prototypes)

    def function(images: Tensor) -> Tensor:
        distances = model.distances(images)
        outputs = [distances if chosen is None else distances.index_select(1, chosen)]
        if rows is not None:
            outputs.append(model.logits(distances, rows))
        if of_logits is not None:
            with unrounded(distances.device.type):
                outputs.append(model.logits(distances) @ of_logits.T)
        if log_probability is not None:
            logits = model.logits(distances) / temperature
            outputs.append(logits.log_softmax(1)[:, log_probability : log_probability + 1])
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
    on_batch_size: Callable[[int], object] | None = None,
) -> Attribution:
    """Shapley values of all outputs of a function of images.

    Args:
        function: maps images (B, C, H, W) to numbers (B, outputs)
        image: (C, H, W)
        settings: how to play
        players: the regions, if they are made already
        driving: the outputs whose precision counts, all by default
        progress: gets (evaluations done, evaluations expected)
        check: whether to make sure that the function repeats itself
        on_batch_size: gets the number of images per pass

    >>> found = play(lambda x: x.flatten(1).sum(1), torch.ones(1, 4, 4), Settings(players=2))
    >>> found.values.round(decimals=6).tolist()
    [[4.0, 4.0, 4.0, 4.0]]
    """
    # With a precision alone a first guess, before anything is known of the errors.
    expected = settings.budget or usual_budget(image.device)
    with passing_through(progress) as tell:
        meter = None if tell is None else _Meter(tell, expected)
        counted = function if meter is None else meter.counting(function)
        game = open_game(counted, image, settings, players, check=check)
        driving = list(range(game.n_outputs)) if driving is None else list(driving)
        result = estimate(
            game,
            settings.estimator,
            budget=settings.allowed,
            precision=settings.precision,
            outputs=driving,
            seed=settings.seed,
            progress=None if meter is None else meter.estimated,
            **settings.options,
        )
        if meter is not None:
            meter.finish()
    if on_batch_size is not None and settings.traits.evaluates:
        on_batch_size(game.batch_size)
    if settings.autocast is not None:
        result = with_exact_totals(result, exact_total(function, game), driving)
    return result.without_state()


def open_game(
    function: Callable[[Tensor], Tensor],
    image: Tensor,
    settings: Settings,
    players: Players | None,
    *,
    check: bool,
) -> Game:
    """The game on one image, as the settings say; see `play`."""
    assert not isinstance(settings.autocast, str), "settings are resolved at the door, by Settings.on"
    return Game(
        function,
        image,
        make_players(settings.players, image) if players is None else players,
        settings.baseline,
        batch_size=settings.batch_size,
        memory=settings.memory,
        autocast=settings.autocast,
        check=check,
    )


def batch_key(image: Tensor, settings: Settings, names: Sequence[str]) -> Hashable:
    """What decides how many images fit into a batch of one network."""
    return tuple(image.shape), settings.memory, settings.autocast, tuple(names)


@torch.no_grad()
def exact_total(function: Callable[[Tensor], Tensor], game: Game) -> Tensor:
    """What the players of a game under autocast share without it, (outputs,)."""
    whole, nothing = function(torch.stack([game.image, game.baseline])).double().cpu()
    return whole - nothing


def with_exact_totals(result: Attribution, total: Tensor, driving: Sequence[int]) -> Attribution:
    """The result of a game under autocast, with the totals that the function has without it.

    What rounding changed is redistributed as any gap is, in proportion to the values' variances: values then
    add up to the network's own numbers. It counts in the completeness gap, and the options hold how large it
    is, relative to the total, for the worst of the outputs `driving`.
    """
    change = result.total - total
    worst = (change[list(driving)].abs() / total[list(driving)].abs().clamp_min(1e-30)).max()
    variances = result.standard_errors.square().nan_to_num(nan=0.0)
    return replace(
        result,
        values=redistribute(result.values, variances, total)[0],
        total=total,
        completeness_gap=result.completeness_gap + change,
        options={**result.options, ROUNDING: float(worst)},
    )


def _spread_outputs(result: Attribution, places: Sequence[int], count: int) -> Attribution:
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
        wrong_signs=None if result.wrong_signs is None else spread(result.wrong_signs),
    )


class _Meter:
    """Counts images as the network sees them, whatever the estimator: progress moves with every batch."""

    def __init__(self, progress: Progress, expected: int):
        self.progress, self.expected, self.done = progress, expected, 0

    def counting(self, function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
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
        self.progress(min(done, self.expected), self.expected)


def check_game(settings: Settings, image: Tensor) -> None:
    """Raises if the settings are wrong for every image of this size; asks the network nothing."""
    players = make_players(settings.players, image)
    if isinstance(settings.players, str):
        # How many superpixels there are depends on the image; two regions suit every estimator.
        players = Players.windows(image.shape[-2:], (image.shape[-2], math.ceil(image.shape[-1] / 2)))
    baselines = [settings.baseline]
    if settings.second_baseline is not None:
        baselines.append(settings.second_baseline)
    for baseline in baselines:
        alone = replace(settings, baseline=baseline, second_baseline=None)
        game = open_game(_zeros, image, alone, players, check=False)
        check_estimate(
            game,
            settings.estimator,
            budget=settings.allowed,
            precision=settings.precision,
            **settings.options,
        )


def _zeros(images: Tensor) -> Tensor:
    """Stands for the network."""
    return images.new_zeros(len(images), 1)

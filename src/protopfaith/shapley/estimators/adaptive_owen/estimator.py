"""Owen sampling where the variance is, of what a surrogate leaves over, shrunk towards a smooth map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from protopfaith.constants import constant
from protopfaith.shapley.attribution import redistribute
from protopfaith.shapley.densities import anchored_mean, membership_weights, remove_mean
from protopfaith.shapley.estimation import ESTIMATORS
from protopfaith.shapley.estimators.adaptive_owen import surrogate as surrogates
from protopfaith.shapley.estimators.adaptive_owen.additive import fit_additive
from protopfaith.shapley.estimators.adaptive_owen.coalitions import (
    allocate,
    masks_of_sizes,
    random_keys,
    spread_sizes,
)
from protopfaith.shapley.estimators.adaptive_owen.control import Control, Predicted
from protopfaith.shapley.estimators.adaptive_owen.pairs import (
    PROBES,
    Layout,
    Pairing,
    mirrored,
    seems_linear,
)
from protopfaith.shapley.estimators.adaptive_owen.phases import (
    KEPT,
    PHASES,
    STREAMS,
    of_others,
    of_streams,
    phase,
    spent,
)
from protopfaith.shapley.estimators.adaptive_owen.posterior import posterior
from protopfaith.shapley.estimators.adaptive_owen.smoothing import Neighborhood, shrink
from protopfaith.shapley.estimators.adaptive_owen.sums import SUMS, moved_sums, weighted_sums
from protopfaith.shapley.estimators.exact import or_exact
from protopfaith.shapley.game import Game
from protopfaith.shapley.noise import Noisy
from protopfaith.shapley.sampling import (
    DRAWN,
    ENDS,
    Estimate,
    Generators,
    Sampler,
    State,
    blocks,
    by_block,
    by_sampling,
    checked_state,
)
from protopfaith.specs import LEAST_BUDGET

SHIFT = 1 << 40  # number of the generator that says where the sizes begin
FOURS = SHIFT + 1  # number of the generator that rearranges the first samples
ALIKE = 36  # players, up to which many coalitions are alike; with 144 variances would be 1% larger
SURE = 1024  # samples, from which on those that tell of each other no longer matter
ROUND = 1 << 14  # later samples of a round at most: progress is reported between rounds


@ESTIMATORS.register("adaptive_owen", description="estimated by hiding random sets of regions")
@or_exact
@by_sampling
def adaptive_owen(
    game: Game, state: State, *, allocation: bool = True, surrogate: bool = True, shrinkage: bool = True
) -> Sampler:
    """The default. Owen sampling (see `owen`) with three additions:

    1. Sizes of coalitions are drawn where the variance is, as measured so far.
    2. A surrogate with known Shapley values (`surrogate.py`) is fitted to the samples; only what it leaves
       over on samples that it has not seen is estimated by sampling. The first 2,048 samples are
       predicted leaving themselves out; for later ones the surrogate is fixed, so they need no memory.
       Where players hardly act together, an additive game (`additive.py`) takes its place: effects that
       just add up are found exactly as soon as there are some more samples than players.
       Where at most two act together, coalitions come with their complements (`pairs.py`), and half the
       difference of their values is such a game.
    3. The values are shrunk to what is likely (`posterior.py`), and the gap to the total is redistributed in
       proportion to the variance that is left.

    Steps 1 and 2 add no bias beyond chance. Step 3 trades a little bias for much less error; its standard
    errors allow for that. `shrinkage=False` (or `surrogate`, `allocation`) leaves it out. Games with so few
    players that the budget covers all coalitions are solved exactly.
    """
    return _Adaptive(game, state, allocation=allocation, surrogate=surrogate, shrinkage=shrinkage)


_LEARNED: WeakKeyDictionary[Game, tuple[Sequence[surrogates.Setting], tuple[Tensor, ...], _Learned]]
_LEARNED = WeakKeyDictionary()  # the last fit of every game that is there


class _Adaptive:
    least = LEAST_BUDGET - ENDS

    def __init__(self, game: Game, state: State, *, allocation: bool, surrogate: bool, shrinkage: bool):
        self.kept = checked_state(state, nothing_kept(game))
        self.allocation, self.shrinkage = allocation, shrinkage
        self.settings = surrogates.SETTINGS if surrogate else ()
        self.near = Neighborhood.of(game.players)
        self.ends = anchored_mean(game)
        half = mirrored(game.n_players, game.n_outputs) if surrogate else 0
        self.layout = Layout(half, PROBES if half else 0)
        if state is not None:
            flags = {name: bool(self.kept[name]) for name in ("mirrored", "paired")}
            self.layout = replace(self.layout, **flags)
        self.units = 0 if state is None else int(self.kept["count"])  # beyond the samples that are kept
        self.resumed = state is not None
        self._learned: _Learned | None = None

    @property
    def smallest(self) -> int:
        """Beyond the kept samples pairs are not parted."""
        return 2 if self.layout.paired and len(self.kept["masks"]) >= KEPT else 1

    def round(self, game: Game, most: int, generators: Generators) -> int:
        have = len(self.kept["masks"])
        if have >= KEPT:
            return self._add_up(game, most, generators)
        number, end = phase(have)
        self._decide_pairs(game, have)
        if have == PHASES[number]:
            self.kept["chances"][number] = self._allocation(game)
        if self.layout.mirrored and have < self.layout.end:
            end = min(end, self.layout.end)
        count, n = min(most, end - have), game.n_players

        def keys() -> Tensor:
            return torch.rand(PROBES // 4, n, generator=generators[FOURS], device=game.device)

        for size in blocks(count, n):
            start = len(self.kept["masks"])
            masks = self._drawn(self.kept["chances"][number], start, size, generators)
            masks = self._pairing(start + size).completed(self.kept["masks"], masks, keys)
            for name, new in (("masks", masks), ("values", game.unchecked(masks))):
                self.kept[name] = torch.cat([self.kept[name], new])
        return count

    def estimate(self, game: Game) -> Estimate:
        if game.device.type == "cpu":
            self._settled(game)
            return self._likely(game)
        found = self._likely(game)  # while a GPU finds out whether the surrogate is settled: it mostly is
        return found if self._settled(game) else self._likely(game)

    def _likely(self, game: Game) -> Estimate:
        found = self._unshrunk(game)
        if not self.shrinkage:
            gap = found.values.sum(1) - game.total
            values, variances = redistribute(found.values, found.noise(), game.total)
            return Estimate(values, variances, gap)
        likely = posterior(found.values, found.variances, found.noise(), self.near)
        gap = likely.mean.sum(1) - game.total
        values, variances = redistribute(likely.mean, likely.variance, game.total)
        variances = (variances + likely.allowance) * found.above_average()
        return Estimate(values, variances, gap, wrong_sign=likely.wrong_sign)

    def _unshrunk(self, game: Game) -> Noisy:
        """The unbiased estimate from all samples."""
        learned = self._first(game)
        if self.units <= 1:
            return learned.found.rounded()
        sums, squares, fourths = (self.kept[name] for name in SUMS)
        later = Noisy.from_sums(sums, squares, fourths, self.kept["count"])
        return learned.found.combined(later.plus(self.kept["known"])).rounded()

    def state(self) -> dict[str, Tensor]:
        if self.units:
            return self.kept
        # Nothing was added up: zeros are made on the CPU rather than sent there.
        made = (*SUMS, "known")
        return {k: torch.zeros_like(v, device="cpu") if k in made else v for k, v in self.kept.items()}

    def _drawn(self, chances: Tensor, start: int, count: int, generators: Generators) -> Tensor:
        """Masks from sample number `start` on, each by the chances (streams, n-1) of its stream."""
        shift = torch.rand((), generator=generators[SHIFT], device=generators.device)
        n = chances.shape[1] + 1
        keys = by_block(start, count, lambda number: random_keys(DRAWN, n, generators[number]))
        return masks_of_sizes(of_streams(spread_sizes(chances, start, count, shift), start), keys)

    def _allocation(self, game: Game) -> Tensor:
        """Chances of the sizes for all streams (streams, n-1), each by the variance that the others show.

        A sample counts by the chances of its whole stream, so these must not know its value: where a large
        one made its own size more likely, it would count less.
        """
        n, masks, streams = game.n_players, self.kept["masks"], self.kept["chances"].shape[1]
        if not self.allocation or len(masks) == 0:
            return torch.full((streams, n - 1), 1 / (n - 1), dtype=torch.float64, device=game.device)
        sizes = masks.sum(1)
        p = sizes.double() / n
        residuals = remove_mean(dict(self.ends), p, self.kept["values"].double())
        if self.layout.paired:
            residuals = self._pairing(len(masks)).folded(residuals)
        variance = residuals.square() * (self._scale(sizes) / (p * (1 - p)))[:, None]
        own = variance.unflatten(0, (-1, streams)).sum(0)  # phases end after whole rounds of the streams
        others = (own.sum(0) - own).clamp_min(1e-300) * game.n_outputs  # (streams, outputs)
        shown = others.reciprocal() @ variance.T * of_others(len(masks), streams, game.device)
        chances = allocate(shown, sizes, n)
        return (chances + chances.flip(1)) / 2 if self.layout.paired else chances  # that of a complement, too

    def _pairing(self, count: int) -> Pairing:
        return Pairing.of(count, self.layout, self.kept["masks"].device)

    def _decide_pairs(self, game: Game, have: int) -> None:
        """Whether complements are drawn: of all first samples, and then of later ones."""
        half, end = self.layout.half, self.layout.end
        if half and have == half and bool(self._probed(game).any()):
            self._lay_out(mirrored=True)
        elif self.layout.mirrored and have == end:
            odd = self._first(game).odd
            self._lay_out(paired=odd is not None and bool(odd.any()))
            self._learned = None

    def _lay_out(self, **flags: bool) -> None:
        self.layout = replace(self.layout, **flags)
        for name, flag in flags.items():
            self.kept[name].fill_(flag)

    def _probed(self, game: Game) -> Tensor:
        """Of which outputs complements show that their odd part seems to be linear, (outputs,)."""
        values = self.kept["values"].double()
        mean = values - remove_mean(dict(self.ends), self.kept["masks"].double().mean(1), values)
        first, second = slice(-2 * PROBES, -PROBES), slice(-PROBES, None)
        middle = (game.grand.double() + game.empty.double()) / 2
        return seems_linear(values[first], values[second], (mean[first] + mean[second]) / 2, middle)

    def _scale(self, sizes: Tensor) -> Tensor:
        """By what each kept sample counts (m,): 1 / (n times the chance of its size in its stream)."""
        drawn, complements = spent(len(sizes), self.layout)
        chances, device = self.kept["chances"], sizes.device
        chance = torch.tensordot(constant(drawn, torch.float64, device), chances, 1)
        if any(complements):
            chance = chance + torch.tensordot(
                constant(complements, torch.float64, device), chances.flip(2), 1
            )
        own = of_streams(chance[:, sizes - 1])
        return (own * (chances.shape[2] + 1)).reciprocal()

    def _first(self, game: Game) -> _Learned:
        """The kept samples' unbiased estimate, worked out again only when there are more of them."""
        if self._learned is None or self._learned.count != len(self.kept["masks"]):
            self._learned = self._remembered(game) or self._learn(game)
        return self._learned

    def _remembered(self, game: Game) -> _Learned | None:
        """What the same samples of the same game taught before: a result that is continued beyond the kept
        samples, slice after slice, needs no other fit."""
        if not self.resumed or game not in _LEARNED:
            return None
        settings, samples, learned = _LEARNED[game]
        same = settings == self.settings and learned.count == len(self.kept["masks"])
        return learned if same and all(map(torch.equal, samples, self._samples())) else None

    def _samples(self) -> tuple[Tensor, ...]:
        return self.kept["masks"], self.kept["values"], self.kept["chances"]

    def _settled(self, game: Game) -> bool:
        """Whether the surrogate is already the best one; afterwards it is."""
        learned = self._first(game)
        better = learned.improved()
        self._learned = replace(better or learned, improved=lambda: None)  # lets go of what the fit needed
        _LEARNED[game] = self.settings, self._samples(), self._learned
        return better is None

    def _learn(self, game: Game) -> _Learned:
        """Each kept sample is predicted by a surrogate that has not seen it; what is left is averaged.

        Nor has what the surrogate expects of the players: the samples are parted into folds, and expectations
        come from the other folds. Otherwise each would be predicted a little too well, and values come out
        too small.
        """
        masks, values = self.kept["masks"], self.kept["values"].double()
        sizes = masks.sum(1)
        mean, pairing, scale = dict(self.ends), self._pairing(len(masks)), self._scale(sizes)
        residuals = remove_mean(mean, sizes.double() / game.n_players, values)
        weights = membership_weights(masks[pairing.units] if len(pairing.pairs) else masks)
        share = game.total[:, None] / game.n_players
        fold = torch.arange(len(masks), device=masks.device) % folds(len(masks))
        priors = self._importance(pairing.merged(residuals, scale), weights, share, len(masks))
        additive = fit_additive(game, masks, values, pairing) if self.settings else None

        def learned(fit: surrogates.CrossFit) -> _Learned:
            predicted = Predicted.by(fit, mean)
            if additive is not None:
                predicted = predicted.or_additive(additive, pairing)
            left = pairing.merged(predicted.left, scale)
            found = Noisy.from_samples(left, weights).widened(predicted.mutual).plus(predicted.known + share)
            known = predicted.control.known + share
            return _Learned(
                len(masks), found, predicted.control, known, lambda: better(fit), odd=predicted.odd
            )

        def better(fit: surrogates.CrossFit) -> _Learned | None:
            second = fit.improved()
            return None if second is None else learned(second)

        return learned(
            surrogates.cross_fit(
                masks,
                residuals,
                fold,
                priors,
                correlation=self.near.correlation,
                settings=self.settings,
                pairing=pairing,
                alike=game.n_players <= ALIKE,
                shared=shared(masks, scale),
            )
        )

    def _importance(self, residuals: Tensor, weights: Tensor, share: Tensor, count: int) -> list[Tensor]:
        """The square that each player's effect is expected to have, averaged over outputs, (n,): for each
        fold as the samples of the others tell it."""
        found = Noisy.without_each(residuals, weights, folds(count))
        values = (found.values + share).flatten(0, 1)
        rough, _ = shrink(values, found.variances.flatten(0, 1), self.near, rough=True)
        squares = rough.square()
        squares = squares / squares.sum(1, keepdim=True).clamp_min(1e-300)
        return list(squares.view_as(found.values).mean(1))

    def _add_up(self, game: Game, most: int, generators: Generators) -> int:
        self._settled(game)  # what is predicted later is predicted by one surrogate
        learned, chances = self._first(game), self._allocation(game)
        self._align(learned.known)
        count = min(most, ROUND) // self.smallest
        for size in blocks(count, game.n_players, game.batch_size):
            masks = self._drawn(chances, KEPT + self.units, size, generators)
            sizes = masks.sum(1)
            chance = of_streams(chances[:, sizes - 1], self.units)
            sums = weighted_sums(masks, sizes, self._left(game, masks, learned.control), chance)
            for name, new in zip(SUMS, sums, strict=True):
                self.kept[name] += new
            self.kept["count"] += size
            self.units += size
        return count * self.smallest

    def _left(self, game: Game, masks: Tensor, control: Control) -> Tensor:
        """What the control leaves over of later samples, or of the odd parts of pairs, (m, outputs)."""
        left = game.unchecked(masks).double() - control(masks)
        if not self.layout.paired:
            return left
        other = game.unchecked(~masks).double() - control(~masks)
        return (left - other) / 2

    def _align(self, known: Tensor) -> None:
        """Makes what was added up what it would be with the values `known` of the control of today, (outputs,
        n): a result that goes on elsewhere, where sums are rounded otherwise, may learn another control."""
        if self.units:
            sums = [self.kept[name] for name in SUMS]
            moved = moved_sums(sums, self.kept["count"], self.kept["known"] - known)
            self.kept |= dict(zip(SUMS, moved, strict=True))
        self.kept["known"] = known


@dataclass(frozen=True, eq=False)
class _Learned:
    """What `count` kept samples say: an estimate, and what stays fixed for the samples after them."""

    count: int
    found: Noisy
    control: Control
    known: Tensor  # (outputs, n): the part of the values that the control and the total make
    improved: Callable[[], _Learned | None]  # by a better surrogate, if there is one; waits for a GPU
    odd: Tensor | None = None  # (outputs,): those of which pairs show that their odd part is simple


def shared(masks: Tensor, scale: Tensor) -> Tensor | None:
    """What any two samples (m,) count by in the values of players, multiplied, on average over players; none
    where hardly any two are alike, or samples are so many that it makes no difference."""
    if masks.shape[1] > ALIKE or len(masks) > SURE:
        return None
    counted = membership_weights(masks) * scale[:, None]
    return counted @ counted.T / masks.shape[1]


def folds(count: int) -> int:
    """In how many parts samples are parted: fewer where each costs a factorization of many."""
    return 4 if count <= 1024 else 2


def nothing_kept(game: Game) -> dict[str, Tensor]:
    """The state before the first sample."""
    n, outputs, device = game.n_players, game.n_outputs, game.device
    kind: dict[str, Any] = {"dtype": torch.float64, "device": device}
    return {
        "masks": torch.zeros(0, n, dtype=torch.bool, device=device),
        "values": torch.zeros(0, outputs, dtype=game.grand.dtype, device=device),
        "chances": torch.zeros(len(PHASES) - 1, STREAMS, n - 1, **kind),  # of the sizes, by phase and stream
        # whether the first samples have complements, and whether later ones come in pairs
        "mirrored": torch.zeros((), dtype=torch.bool, device=device),
        "paired": torch.zeros((), dtype=torch.bool, device=device),
        "count": torch.zeros((), **kind),  # of later samples, or pairs of them
        "known": torch.zeros(outputs, n, **kind),  # the values of the control that later samples are added to
        "sum": torch.zeros(outputs, n, **kind),
        "squares": torch.zeros(outputs, n, **kind),
        "fourths": torch.zeros(outputs, n, **kind),
    }

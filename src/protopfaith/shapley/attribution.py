"""Attribution: Shapley values together with what is needed to judge them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protopfaith.arguments import (
    finite_number,
    instance,
    not_empty,
    numbers_below,
    odd_kind,
    shown,
    tensor,
    whole_number,
)
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import reason
from protopfaith.npz import read_npz
from protopfaith.shapley.players import Players
from protopfaith.writing import atomic, refuse_others

FORMAT = 1
ROUNDING = 1e-7  # of the largest value: less is rounding
# Of the rate: what a posterior's chances may add up to. Where two players in a hundred do anything, twice as
# many signs were wrong as these chances said.
MARGIN = 0.5
# Chances are learned from the map. Of 58 decisions on thirty maps of a game in which hardly anything stands
# out, six were wrong; with this none of 20 is, and maps that decide many players stay as they are.
FEW = 10


@dataclass(frozen=True, eq=False, repr=False)
class Attribution:
    """Shapley values of every player for every output, with their standard errors.

    All tensors are float64 on the CPU. `standard_errors` are zero for exact values and NaN where an
    estimator cannot know its error (a deterministic approximation, or a single sample). After the residual
    was redistributed, `values` sum to `total` if the estimator redistributes. `state` lets
    `protopfaith.shapley.estimate` continue with more evaluations.

    Args:
        values: the Shapley values, (outputs, n)
        standard_errors: of the values, (outputs, n)
        completeness_gap: sum of the values minus total, before it was redistributed, (outputs,)
        total: value of all players minus value of none, (outputs,)
        evaluations: how often the function was evaluated
        players: who shares the total
        baseline: what replaces hidden players, in words
        method: the estimator's name
        seed: of its draws
        precision: the relative error that was reached, see `relative_error`; NaN where it is unknown
        reached: False if a precision was asked for and the budget was too small
        degrees_of_freedom: of the standard errors
        options: of the estimator
        state: what `estimate` needs to continue; None if it cannot
        wrong_signs: (outputs, n): chances, where the estimator has a posterior that says them

    >>> from protopfaith.shapley import Game, estimate
    >>> image = torch.arange(1.0, 5.0).reshape(1, 2, 2)
    >>> game = Game(lambda x: x.flatten(1).square().sum(1), image, Players.windows((2, 2), 1))
    >>> found = estimate(game, "exact")
    >>> found.values.round(decimals=6).tolist(), found.maps().shape
    ([[1.0, 4.0, 9.0, 16.0]], torch.Size([1, 2, 2]))
    """

    values: Tensor
    standard_errors: Tensor
    completeness_gap: Tensor
    total: Tensor
    evaluations: int
    players: Players
    baseline: str
    method: str
    seed: int
    precision: float = math.nan
    reached: bool = True
    degrees_of_freedom: float = math.inf
    options: dict = field(default_factory=dict)
    state: dict[str, Tensor] | None = None
    wrong_signs: Tensor | None = (
        None  # (outputs, n): chances, where the estimator has a posterior that says them
    )

    def __post_init__(self) -> None:
        instance(self.players, Players, "The players of an attribution", "Players")
        tensor(self.values, "The values of an attribution", "outputs x players", 2)
        outputs, n = self.values.shape
        if not outputs or n != len(self.players):
            raise ProtoPFaithError(
                f"The values of an attribution must be outputs x {len(self.players)} (one per player), "
                f"not of shape {tuple(self.values.shape)}."
            )
        shapes = {"standard_errors": (outputs, n), "wrong_signs": (outputs, n)}
        shapes |= {"completeness_gap": (outputs,), "total": (outputs,)}  # type: ignore[dict-item]
        for name, shape in shapes.items():
            part = getattr(self, name)
            if part is None and name == "wrong_signs":
                continue
            if not isinstance(part, Tensor) or part.shape != shape or odd_kind(part):
                odd = not isinstance(part, Tensor) or odd_kind(part)
                given = shown(part) if odd else f"of shape {tuple(part.shape)}"
                raise ProtoPFaithError(f"The {name} of an attribution must be of shape {shape}, not {given}.")

        whole_number(self.evaluations, "The evaluations of an attribution", least=0)
        whole_number(self.seed, "The seed of an attribution")
        for name in ("baseline", "method"):
            instance(getattr(self, name), str, f"The {name} of an attribution", "text")
        for name in ("precision", "degrees_of_freedom"):
            instance(getattr(self, name), (int, float), f"The {name} of an attribution", "a number")
        instance(self.options, dict, "The options of an attribution", "a mapping")
        instance(self.state, (dict, type(None)), "The state of an attribution", "a mapping or None")

    def __repr__(self) -> str:
        """One line; the tensors would fill screens."""
        outputs = f"{len(self.values)} output{'s' if len(self.values) > 1 else ''}"
        # An approximation's measure of its own rule (moment_path's gap) is not how far its values are off.
        known = math.isfinite(self.precision) and bool(self.standard_errors.isfinite().any())
        precision = f"{self.precision:.3g}" if known else "unknown"
        missed = "" if self.reached else " (short of what was asked)"
        return (
            f"Attribution({self.method}: {outputs}, {self.players.description}, baseline {self.baseline}, "
            f"{self.evaluations:,} evaluations, precision {precision}{missed}, "
            f"largest completeness gap {float(self.completeness_gap.abs().max()):.3g})"
        )

    def interval(self, level: float = 0.95) -> tuple[Tensor, Tensor]:
        """Lower and upper ends of the confidence intervals, each `(outputs, n)`.

        Args:
            level: the share of intervals that hold the true value.
        """
        level = finite_number(level, "The level of intervals", least=0, most=1)
        half = student_quantile(0.5 + level / 2, self.degrees_of_freedom) * self.standard_errors
        return self.values - half, self.values + half

    def decided(self, rate: float = 0.05) -> Tensor:
        """Players whose sign is known, `(outputs, n)`: a statement about each output's map as a whole.

        Of the players that are decided at most the share `rate` is expected to have the wrong sign; one whose
        true value is zero counts as wrong. Where the estimator has a posterior, the mean of its chances
        (`wrong_signs`) is at most half the rate, as they are estimates themselves, and each of them is at
        most twice the rate, as is what the player's own error bar says. Otherwise the players are those that
        the procedure of Benjamini and Hochberg rejects at that rate. Where fewer than ten are decided the
        rate is as much smaller: a map in which next to nothing stands out tells little about chances, and
        most of what stands out in maps of nothing is wrong. Nothing is decided where errors are unknown.

        Args:
            rate: the share of wrong signs among the decided ones that is tolerated.

        >>> from protopfaith.shapley import Game, estimate
        >>> image = torch.tensor([[[3.0, 0.0, -1.0]]])
        >>> game = Game(lambda x: x.flatten(1).sum(1), image, Players.windows((1, 3), 1))
        >>> estimate(game, "exact").decided().tolist()
        [[True, False, True]]
        """
        rate = finite_number(rate, "The rate of wrong signs", least=0, most=1)
        if self.wrong_signs is not None:
            chances = self.wrong_signs.nan_to_num(nan=1.0)
            found = chosen(chances, _mean_chance, MARGIN * rate)
            # Chances know nothing of what standard errors allow for beyond the posterior.
            found = found & (chances <= 2 * rate) & (self._p_values() / 2 <= 2 * rate)
        else:
            count = self.values.shape[1]
            found = chosen(self._p_values(), lambda ordered, rank: ordered * count / rank * few(rank), rate)
        return found & (self.values.abs() > ROUNDING * self.values.abs().amax(1, keepdim=True))

    def _p_values(self) -> Tensor:
        """Of the hypotheses that a value is zero, two-sided; one where the error is unknown."""
        from scipy.stats import t

        ratio = (self.values / self.standard_errors).abs()  # 0 / 0 is NaN, and so is an unknown error
        return torch.as_tensor(2 * t.sf(ratio.numpy(), self.degrees_of_freedom)).nan_to_num(nan=1.0)

    def of_outputs(self, outputs: Sequence[int] | Tensor) -> Attribution:
        """The rows of some outputs, without the state.

        Args:
            outputs: their numbers.
        """
        some = torch.tensor(numbers_below(len(self.values), outputs, "The outputs"))
        rows = {name: getattr(self, name)[some] for name in _ARRAYS}
        signs = None if self.wrong_signs is None else self.wrong_signs[some]
        return replace(self, **rows, wrong_signs=signs, state=None)

    def maps(self) -> Tensor:
        """Values painted onto their pixels: `(outputs, H, W)`, or `(outputs, C, H, W)` with channels
        apart.
        """
        return self.players.to_map(self.values)

    def without_state(self) -> Attribution:
        return replace(self, state=None)

    def _repr_html_(self) -> str:
        """One map per output, in a notebook."""
        from protopfaith.show.notebook import ShownAttribution

        return ShownAttribution(self)._repr_html_()

    def save(self, path: Path | str) -> None:
        """Writes one `.npz` file: arrays, and everything else as JSON in its entry `metadata`.

        Args:
            path: of the file; one that is there is replaced
        """
        arrays = {name: getattr(self, name).numpy() for name in _ARRAYS}
        if self.wrong_signs is not None:
            arrays["wrong_signs"] = self.wrong_signs.numpy()
        arrays["labels"] = self.players.labels.cpu().numpy()
        for name, part in (self.state or {}).items():
            arrays[f"state.{name}"] = part.cpu().numpy()
        metadata = {name: getattr(self, name) for name in _SCALARS}
        metadata |= {"format": FORMAT, "players": self.players.kind, "resumable": self.state is not None}
        arrays["metadata"] = np.array(json.dumps(metadata))
        if isinstance(path, (str, Path)):  # else told by `atomic`
            refuse_others(Path(path), (".npz",), b"pk", "attribution")
        with atomic(path) as partial, partial.open("wb") as file:
            np.savez_compressed(file, **arrays)

    @staticmethod
    def load(path: Path | str) -> Attribution:
        """Reads what `save` wrote; executes no code.

        Args:
            path: of a file that `save` wrote
        """
        not_empty(instance(path, (str, Path), "An attribution", "the path of a file"), "An attribution")
        try:
            return Attribution._load(path)
        except ProtoPFaithError:
            raise
        except Exception as error:  # whatever a damaged archive leads to
            raise ProtoPFaithError(
                f"{path} is not a readable attribution ({reason(error)}); expected a file written by "
                f"Attribution.save."
            ) from error

    @staticmethod
    def _load(path: Path | str) -> Attribution:
        arrays = read_npz(path)
        metadata = json.loads(str(arrays.pop("metadata")))
        if metadata.pop("format") != FORMAT:
            raise ProtoPFaithError(
                f"{path} was written in another format than {FORMAT}; update ProtoPFaith to read it."
            )
        players = Players(torch.from_numpy(arrays.pop("labels")), metadata.pop("players"))
        prefix = "state."
        state = {
            k.removeprefix(prefix): torch.from_numpy(v) for k, v in arrays.items() if k.startswith(prefix)
        }
        tensors: dict[str, Any] = {name: torch.from_numpy(arrays[name]) for name in _ARRAYS}
        signs = torch.from_numpy(arrays["wrong_signs"]) if "wrong_signs" in arrays else None
        return Attribution(
            **tensors,
            wrong_signs=signs,
            players=players,
            state=state if metadata.pop("resumable") else None,
            **metadata,
        )


_ARRAYS = ("values", "standard_errors", "completeness_gap", "total")
_SCALARS = (
    "evaluations",
    "baseline",
    "method",
    "seed",
    "precision",
    "reached",
    "degrees_of_freedom",
    "options",
)


def relative_error(values: Tensor, standard_errors: Tensor, outputs: Sequence[int] | None = None) -> float:
    """Root mean square standard error over root mean square value, for the worst output.

    An output without any effect and without error counts as 0; unknown errors (NaN) give infinity.

    Args:
        values: `(outputs, n)`.
        standard_errors: `(outputs, n)`.
        outputs: numbers of the outputs that count, all by default.

    >>> relative_error(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.3, 0.4]]))
    0.10000000149011612
    """
    for given, what in ((values, "Values"), (standard_errors, "Standard errors")):
        tensor(given, what, "outputs x players", 1, 2)
    if values.shape != standard_errors.shape:
        raise ProtoPFaithError(
            f"Values of shape {tuple(values.shape)} cannot have standard errors of shape "
            f"{tuple(standard_errors.shape)}; give one for each."
        )
    _check_not_negative(standard_errors, "A standard error")
    if not values.numel():
        raise ProtoPFaithError("There are no values whose error could be judged; give at least one.")
    values, standard_errors = (
        given if given.is_floating_point() else given.double() for given in (values, standard_errors)
    )
    if outputs is not None:
        some = numbers_below(len(values), outputs, "The outputs whose precision counts")
        values, standard_errors = values[some], standard_errors[some]
    return float(largest_ratio(values, standard_errors))


def largest_ratio(values: Tensor, standard_errors: Tensor) -> Tensor:
    """The `relative_error` as a tensor, wherever the values are."""
    error = standard_errors.square().mean(-1).sqrt()
    size = values.square().mean(-1).sqrt()
    ratio = torch.where(error == 0, torch.zeros_like(error), error / size)
    return torch.nan_to_num(ratio, nan=math.inf, posinf=math.inf).max()


def few(rank: Tensor) -> Tensor:
    """By how much chances must be smaller where only `rank` players are decided."""
    return (FEW / rank).clamp_min(1)


def _mean_chance(ordered: Tensor, rank: Tensor) -> Tensor:
    """Of the `rank` smallest; of few as if each counted for more."""
    return ordered.cumsum(1) / rank * few(rank)


def chosen(scores: Tensor, bound: Callable[[Tensor, Tensor], Tensor], rate: float) -> Tensor:
    """Which scores of each row are among its k smallest, for the largest k whose bound is at most `rate`.

    `bound(ordered scores, rank)` gives the bound for every k = rank: the share of those k that may be wrong.
    """
    ordered, order = scores.sort(1)
    rank = torch.arange(1, scores.shape[1] + 1, dtype=scores.dtype)
    inside = (bound(ordered, rank) <= rate).flip(1).cummax(1).values.flip(1)
    return torch.zeros_like(inside).scatter(1, order, inside)


def redistribute(values: Tensor, variances: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
    r"""Makes values sum to `total`, moving each in proportion to its variance.

    For independent errors this is the best linear correction:
    $\psi_i \mathrel{-}= \sigma_i^2 \, (\sum_k \psi_k - t) / \sum_k \sigma_k^2$, which leaves the
    variance $\sigma_i^2 (1 - \sigma_i^2 / \sum_k \sigma_k^2)$.

    Args:
        values: `(outputs, n)`.
        variances: `(outputs, n)`, those of the values' errors.
        total: what the values must sum to, `(outputs,)`.

    Returns:
        Values and variances afterwards.

    >>> values, _ = redistribute(torch.zeros(1, 2), torch.tensor([[1.0, 3.0]]), torch.ones(1))
    >>> values.tolist()
    [[0.25, 0.75]]
    """
    for given, what in ((values, "Values"), (variances, "Variances")):
        tensor(given, what, "outputs x players", 2)
    tensor(total, "The total", "one number per output", 1)
    if values.shape != variances.shape or len(total) != len(values):
        shapes = ", ".join(str(tuple(given.shape)) for given in (values, variances, total))
        raise ProtoPFaithError(
            f"Values, variances and totals do not fit each other: their shapes are {shapes}."
        )
    values, variances, total = (
        given if given.is_floating_point() else given.double() for given in (values, variances, total)
    )
    spread = variances.sum(-1, keepdim=True)
    share = torch.where(spread > 0, variances / spread, torch.full_like(variances, 1 / values.shape[-1]))
    gap = values.sum(-1, keepdim=True) - total[:, None]
    return values - share * gap, variances * (1 - share)


def _check_not_negative(given: Tensor, what: str) -> None:
    """Raises if something is below zero by more than rounding."""
    if given.device.type != "cpu" or not given.numel():
        return
    numbers = np.nan_to_num(given.detach().double().numpy())
    lowest = float(numbers.min())
    if lowest < -ROUNDING * float(np.abs(numbers).max()):
        raise ProtoPFaithError(f"{what} is {lowest:g}; give numbers of at least zero.")


def student_quantile(probability: float, degrees_of_freedom: float) -> float:
    """Quantile of Student's t distribution (the normal one for infinitely many degrees of freedom)."""
    if math.isinf(degrees_of_freedom):
        return float(torch.special.ndtri(torch.tensor(probability, dtype=torch.float64)))
    from scipy.stats import t

    return float(t.ppf(probability, degrees_of_freedom))

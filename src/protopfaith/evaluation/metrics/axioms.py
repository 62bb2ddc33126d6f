"""The axioms of faithful explanations, measured: how large is the violation?

Every axiom is tested on the network itself, or on one made from it so that the axiom says what must come out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from protopfaith.annotations import check_arguments
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.explainers import Explainable, Explained, ExplainerFunction, Options, game_of
from protopfaith.evaluation.explainers.common import check_subject, explained_by
from protopfaith.evaluation.metrics.variants import Combined, Exchanged, Masked, rewritten
from protopfaith.network import PatchNetwork
from protopfaith.registry import Registry
from protopfaith.shapley import Players, make_baseline

TOLERANCE = 0.01
"""Violations up to this share of the largest value pass."""
ERRORS = 4.0
"""So do violations within so many standard errors, for explainers that know theirs."""
GRID = 4
"""Axioms are tested on so many rows and columns of windows: few players, so that sampling is precise."""
INFLUENTIAL = 0.05
NOTHING = 1e-6


@dataclass(frozen=True)
class AxiomCheck:
    """One axiom for one explainer: its violation as a share of the largest value, and what is allowed.

    Args:
        axiom: its name
        violation: as a share of the largest value; NaN where it could not be measured
        allowed: how much of that rounding and sampling explain
        note: what to know about it

    >>> AxiomCheck("completeness", violation=0.002, allowed=0.01).passed
    True
    """

    axiom: str
    violation: float
    allowed: float
    note: str = ""

    @property
    def passed(self) -> bool | None:
        """None where it could not be measured."""
        return None if math.isnan(self.violation) else self.violation <= self.allowed


@dataclass(frozen=True, eq=False)
class AxiomTest:
    """An explainer, a network, and an image with two prototypes to test them on."""

    explainer: ExplainerFunction
    model: PatchNetwork
    image: Tensor
    prototypes: tuple[int, int]
    options: Options
    given: Explained | None = None
    twin: PatchNetwork | None = None

    def explain(
        self, model: Explainable, prototypes: Sequence[int], image: Tensor | None = None
    ) -> Explained:
        image = self.image if image is None else image
        return explained_by(self.explainer, model, image, prototypes, self.options)

    @cached_property
    def own(self) -> Explained:
        """The first prototype on the image."""
        return self.given or self.explain(self.model, self.prototypes[:1])

    @property
    def players(self) -> Players:
        return self.options.players

    @cached_property
    def baseline(self) -> Tensor:
        return make_baseline(self.options.baseline, self.image)[0]

    @cached_property
    def effects(self) -> Tensor:
        """How much the distance changes when one player alone is removed, (n,)."""
        game = game_of(self.model, self.image, self.prototypes[:1], self.options)
        without = game(~torch.eye(game.n_players, dtype=torch.bool))[:, 0]
        return (without - game.grand[0]).double().cpu()

    @cached_property
    def combined(self) -> Explained:
        """s_1, s_2 and s_1 - s_2 / 2, of the two prototypes."""
        weights = self.weights([[1.0, 0.0], [0.0, 1.0], [1.0, -0.5]])
        return self.explain(Combined(self.model, weights), [0, 1, 2])

    def weights(self, rows: list[list[float]]) -> Tensor:
        """Rows of weights of the two prototypes among all of them, (outputs, P)."""
        weights = torch.zeros(len(rows), len(self.model.prototypes))
        weights[:, list(self.prototypes)] = torch.tensor(rows)
        return weights

    @cached_property
    def total(self) -> float:
        return float(game_of(self.model, self.image, self.prototypes[:1], self.options).total[0])


Measure = Callable[[AxiomTest], tuple[float, float]]
AXIOMS: Registry[Measure] = Registry("axiom")
"""Functions of a test to (violation, its standard error), both as shares of the largest value."""


def on_grid(options: Options, image: Tensor) -> Options:
    """The same options with `GRID` by `GRID` windows as players, which need fewer evaluations."""
    height, width = image.shape[-2:]
    size = (math.ceil(height / GRID), math.ceil(width / GRID))
    return replace(
        options, players=Players.windows((height, width), size), budget=max(options.budget // 4, 256)
    )


def check_axioms(
    explainer: ExplainerFunction,
    model: PatchNetwork,
    image: Tensor,
    prototypes: tuple[int, int],
    options: Options,
    *,
    axioms: Sequence[str] | None = None,
    own: Explained | None = None,
    twin: PatchNetwork | None = None,
    tolerance: float = TOLERANCE,
) -> list[AxiomCheck]:
    """All axioms (or some) for one explainer on one image (C x H x W) and two prototypes.

    The players must be windows; few, as `on_grid` gives, keep sampling precise. `own` is the
    explanation of the first prototype and `twin` the network as `rewritten` gives it, where they are
    known already.

    Args:
        explainer: one of `EXPLAINERS`
        model: the network
        image: normalized, C x H x W
        prototypes: two of them
        options: for the explainer; few players keep sampling precise
        axioms: names of `AXIOMS`; all by default
        own: the explanation of the first prototype, where it is known already
        twin: the network as `rewritten` gives it, where it is there already
        tolerance: violations up to this share of the largest value pass

    >>> from protopfaith.network import PatchNetwork
    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", ["cat", "dog"], prototypes_per_class=2, prototype_channels=4)
    >>> from protopfaith.evaluation import EXPLAINERS, Options
    >>> from protopfaith.shapley import Players
    >>> options, image = Options(Players.windows((32, 32), 8)), torch.rand(3, 32, 32)
    >>> (check,) = check_axioms(
    ...     EXPLAINERS["random"], model.eval(), image, (0, 2), options, axioms=["completeness"]
    ... )
    >>> check.passed
    False
    """
    check_arguments(check_axioms, locals())
    check_subject(model, image, prototypes, options)
    test = AxiomTest(explainer, model, image, prototypes, options, own, twin)
    return [_checked(name, test, tolerance) for name in (AXIOMS if axioms is None else axioms)]


def _checked(name: str, test: AxiomTest, tolerance: float) -> AxiomCheck:
    measure = AXIOMS[name]
    try:
        violation, error = measure(test)
    except ProtoPFaithError as problem:  # such as an operation without a moment rule
        return AxiomCheck(name, math.nan, tolerance, str(problem).splitlines()[0])
    return AxiomCheck(name, violation, max(tolerance, ERRORS * error))


@AXIOMS.register("completeness")
def completeness(test: AxiomTest) -> tuple[float, float]:
    """The attributions of all players add up to s(image) - s(baseline)."""
    total = -float(test.own.maps[0].sum())
    return abs(total - test.total) / max(abs(test.total), 1e-30), 0.0


@AXIOMS.register("dummy")
def dummy(test: AxiomTest) -> tuple[float, float]:
    """Players that the network does not read get nothing: here the left half, masked before the network."""
    left = test.players.centers[:, 2] < test.image.shape[-1] / 2
    mask = ~left[test.players.labels].to(test.image.device)
    found = test.explain(Masked(test.model, mask, test.baseline), test.prototypes[:1])
    values, errors = found.values(test.players)[0], found.standard_errors(test.players)[0]
    return _share(values[left].abs().max(), values), _share(errors[left].max(), values)


@AXIOMS.register("symmetry")
def symmetry(test: AxiomTest) -> tuple[float, float]:
    """Players that can be exchanged without effect get the same: two regions with equal content, in a network
    that takes the mean over both places."""
    players, sizes = test.players, test.players.sizes
    whole = (sizes == sizes.max()).nonzero().flatten()
    first = int(whole[test.effects[whole].argmax()])
    apart = (players.centers - players.centers[first]).norm(dim=1)
    second = int(whole[apart[whole].argmax()])
    places = [(players.labels.flatten() == p).nonzero().flatten() for p in (first, second)]
    places = [place.to(test.image.device) for place in places]
    image = test.image.clone().flatten(1)
    image[:, places[1]] = image[:, places[0]]
    model = Exchanged(test.model, places[0], places[1], players.image_size)
    found = test.explain(model, test.prototypes[:1], image.unflatten(1, players.image_size))
    values, errors = found.values(players)[0], found.standard_errors(players)[0]
    difference = (values[first] - values[second]).abs()
    return _share(difference, values), _share((errors[first] ** 2 + errors[second] ** 2).sqrt(), values)


@AXIOMS.register("linearity")
def linearity(test: AxiomTest) -> tuple[float, float]:
    """The explanation of s_1 - s_2 / 2 is that of s_1 minus half of that of s_2."""
    values = test.combined.values(test.players)
    errors = test.combined.standard_errors(test.players)
    expected = values[0] - values[1] / 2
    error = (errors[0] ** 2 + errors[1] ** 2 / 4 + errors[2] ** 2).sqrt().max()
    return _share((values[2] - expected).abs().max(), expected), _share(error, expected)


@AXIOMS.register("linearity (log)")
def linearity_of_log(test: AxiomTest) -> tuple[float, float]:
    """Linearity under log similarity g: is the explanation of g(s_1) - g(s_2) / 2 that of s_2 / 2 - s_1, up
    to the best factor? Not in general, which is why distance maps do not add up to logits there."""
    similarity = Combined(test.model, test.weights([[1.0, -0.5]]), "log")
    log = -test.explain(similarity, [0]).values(test.players)[0]
    plain = test.combined.values(test.players)[2]
    factor = (log @ plain) / (plain @ plain).clamp_min(1e-300)
    return _share((log - factor * plain).abs().max(), log), 0.0


@AXIOMS.register("invariance")
def invariance(test: AxiomTest) -> tuple[float, float]:
    """Networks that compute the same function get the same explanation, however they are written."""
    values = test.own.values(test.players)[0]
    other = test.explain(test.twin or rewritten(test.model), test.prototypes[:1]).values(test.players)[0]
    return _share((other - values).abs().max(), values), 0.0


@AXIOMS.register("sensitivity")
def sensitivity(test: AxiomTest) -> tuple[float, float]:
    """Players whose removal alone changes the distance get something: the share of them that gets nothing."""
    influential = test.effects.abs() > INFLUENTIAL * test.effects.abs().max()
    values = test.own.values(test.players)[0].abs()
    nothing = values <= NOTHING * max(float(values.max()), abs(test.total))
    count = int(influential.sum())
    return (float((nothing & influential).sum()) / count if count else 0.0), 0.0


def _share(size: Tensor, values: Tensor) -> float:
    largest = float(values.abs().max())
    return float(size) / largest if largest > 0 else 0.0

"""Games in which at most two players act together are solved from coalitions and their complements."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import Game, Players, estimate
from protopfaith.shapley.estimators.adaptive_owen.additive import fit_additive
from protopfaith.shapley.estimators.adaptive_owen.pairs import (
    FEW,
    PROBES,
    Layout,
    Pairing,
    rearranged,
    seems_linear,
)
from protopfaith.shapley.estimators.adaptive_owen.phases import PHASES, spent
from protopfaith.shapley.estimators.adaptive_owen.surrogate import cross_fit

N = 30
CPU = torch.device("cpu")
WEIGHTS = torch.randn(N, N, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def game(triples: float = 0.0) -> Game:
    """All pairs (and players alone) count; `triples` is how much more where the first player is there."""

    def function(images: Tensor) -> Tensor:
        x = images.flatten(1)
        return ((x @ WEIGHTS) * x).sum(1, keepdim=True) * (1 + triples * x[:, :1])

    return Game(function, torch.ones(1, 5, 6, dtype=torch.float64), Players.windows((5, 6), 1))


TRUTH = (WEIGHTS.sum(0) + WEIGHTS.sum(1)) / 2


def random_masks(count: int, n: int = N) -> Tensor:
    keys = torch.rand(count, n, generator=torch.Generator().manual_seed(1))
    return keys < torch.linspace(0.15, 0.85, count)[:, None]


@pytest.mark.parametrize("budget", [512, 2_047, 2_601])
def test_pairs_are_solved(budget: int) -> None:
    found = estimate(game(), budget=budget)
    assert torch.allclose(found.values[0].double(), TRUTH, atol=1e-5)
    assert found.standard_errors.max() < 1e-4
    assert found.decided().all()
    assert found.evaluations <= budget


def test_later_samples_are_pairs_which_one_evaluation_cannot_part() -> None:
    found = estimate(game(), budget=2_601)
    assert found.evaluations == 2_600
    assert bool(found.state["paired"])
    assert bool(estimate(game(0.02), budget=600).state["paired"])
    assert int(found.state["count"]) == (2_600 - 2 - 2_048) // 2
    masks = found.state["masks"]
    assert torch.equal(masks[256:480], ~masks[:224])
    later = masks[480:].unflatten(0, (-1, 2, 8))
    assert torch.equal(later[:, 1], ~later[:, 0])


@pytest.mark.parametrize(
    ("triples", "steps"), [(0.0, (237, 249, 300, 700)), (1.0, (230, 258, 700)), (0.02, (600, 2_055, 2_201))]
)
def test_going_on_gives_what_one_go_gives(triples: float, steps: tuple[int, ...]) -> None:
    found = None
    for budget in steps:
        found = estimate(game(triples), budget=budget, resume=found)
    whole = estimate(game(triples), budget=steps[-1])
    assert found is not None
    assert torch.equal(found.state["masks"], whole.state["masks"])
    assert torch.allclose(found.values, whole.values, atol=1e-6)


def test_errors_of_a_game_that_is_nearly_of_order_two_hold() -> None:
    one, size = game(0.02), 1.96
    truth = estimate(one, "kernel", budget=1 << 16).values
    far = []
    for seed in range(8):
        found = estimate(one, budget=512, seed=seed)
        assert (found.values - truth).norm() < 0.05 * truth.norm()
        far.append((found.values - truth).abs() / found.standard_errors)
    assert (torch.stack(far) < size).double().mean() > 0.9


def test_where_more_act_together_few_complements_are_drawn() -> None:
    masks = estimate(game(1.0), budget=1_024).state["masks"]
    assert torch.equal(masks[256 - PROBES : 256], ~masks[256 - 2 * PROBES : 256 - PROBES])
    assert not (masks[256:480] == ~masks[:224]).all(1).any()


@pytest.mark.parametrize(("n", "outputs", "surrogate"), [(N, FEW + 1, True), (1_200, 1, True), (N, 1, False)])
def test_with_many_outputs_or_players_or_no_surrogate_no_complements_are_drawn(
    n: int, outputs: int, surrogate: bool
) -> None:
    def function(images: Tensor) -> Tensor:
        return images.flatten(1).sum(1, keepdim=True).square().expand(-1, outputs)

    image, players = torch.ones(1, n // 6, 6, dtype=torch.float64), Players.windows((n // 6, 6), 1)
    found = estimate(Game(function, image, players), budget=520, surrogate=surrogate).state["masks"]
    assert not torch.equal(found[240:256], ~found[224:240])


def test_a_state_of_before_is_refused() -> None:
    found = estimate(game(), budget=300)
    del found.state["paired"]
    with pytest.raises(ProtoPFaithError, match="another version"):
        estimate(game(), budget=400, resume=found)


def fours() -> Tensor:
    first, second = random_masks(PROBES // 2).chunk(2)
    keys = torch.rand(PROBES // 4, N, generator=torch.Generator().manual_seed(2))
    return torch.cat([first, second, rearranged(first, second, keys)])


def test_fours_have_the_same_sizes_and_players() -> None:
    first, second, third, fourth = fours().int().chunk(4)
    assert torch.equal(first + second, third + fourth)
    assert torch.equal(first.sum(1), third.sum(1))
    assert not torch.equal(first, third)


def test_probes_are_fours_wherever_a_budget_ends() -> None:
    masks = estimate(game(1.0), budget=300).state["masks"][224:240].int()
    first, second, third, fourth = masks.chunk(4)
    assert torch.equal(first + second, third + fourth)


@pytest.mark.parametrize(("kind", "expected"), [("linear", False), ("square", True), ("sine", False)])
def test_what_seems_linear(kind: str, expected: bool) -> None:
    """A game of order one needs no pairs, one of all orders has no use for them."""
    functions = {"linear": lambda x: x, "square": torch.square, "sine": lambda x: (9 * x).sin()}

    def values(masks: Tensor) -> Tensor:
        return functions[kind](masks.double() @ torch.linspace(-1, 2, N, dtype=torch.float64))[:, None]

    middle = values(torch.ones(1, N))[0] / 2
    mean = torch.zeros(PROBES, 1, dtype=torch.float64)
    assert bool(seems_linear(values(fours()), values(~fours()), mean, middle)) is expected


def paired_samples(pairs: int) -> tuple[Tensor, Pairing]:
    masks = random_masks(pairs)
    return torch.cat([masks, ~masks]), Pairing.of(2 * pairs, Layout(half=pairs, mirrored=True), CPU)


def test_what_is_left_over_is_that_of_a_fit_without_the_pair() -> None:
    masks, pairing = paired_samples(80)
    one = game(0.3)
    values = one(masks).double()
    fitted = fit_additive(one, masks, values, pairing)
    assert fitted is not None
    assert fitted.odd.all()
    for k in (0, 57, 79):
        others = torch.arange(160) % 80 != k
        without = fit_additive(
            one, masks[others], values[others], Pairing.of(158, Layout(half=79, mirrored=True), CPU)
        )
        assert without is not None
        left = values[[k, k + 80]] - without.game(masks[[k, k + 80]])
        assert torch.allclose(fitted.left[k], (left[0] - left[1]) / 2, atol=1e-6)


def test_a_surrogate_predicts_neither_half_of_a_pair_from_the_other() -> None:
    masks, pairing = paired_samples(40)
    values = game(0.3)(masks).double()
    values = values - values.mean(0)
    prior, setting = torch.ones(N, dtype=torch.float64), ((1.0, 0.5),)
    fold = torch.zeros(80, dtype=torch.long)
    left = cross_fit(masks, values, fold, [prior], correlation=None, settings=setting, pairing=pairing).left
    alone = cross_fit(masks, values, fold, [prior], correlation=None, settings=setting).left
    assert not torch.allclose(left, alone, rtol=0.05)
    changed = values.clone()
    changed[41] += 0.5 * values.std()
    again = cross_fit(masks, changed, fold, [prior], correlation=None, settings=setting, pairing=pairing).left
    moved = (again - left).abs() / values.std()
    assert moved[1] < 0.05  # of the kernel's scale and noise alone, which know all samples
    assert abs(float(moved[41]) - 0.5) < 0.05


def test_units_are_pairs_and_samples_alone() -> None:
    pairing = Pairing.of(28, Layout(half=10, probes=2, mirrored=True, paired=True), CPU)
    assert pairing.partner[:16].tolist() == [10, 11, 12, 13, 14, 15, 8, 9, 6, 7, 0, 1, 2, 3, 4, 5]
    assert pairing.partner[16:].tolist() == [24, 25, 26, 27, 20, 21, 22, 23, 16, 17, 18, 19]
    assert pairing.units.tolist() == [*range(8), *range(16, 24)]
    assert pairing.pairs.tolist() == [*range(8), *range(16, 20)]
    probed = Pairing.of(9, Layout(half=10, probes=2), CPU)
    assert probed.partner.tolist() == [0, 1, 2, 3, 4, 5, 8, 7, 6]


@pytest.mark.parametrize("count", [100, 250, 300, 700, 2_048])
def test_samples_count_by_the_phase_in_which_they_or_their_firsts_were_drawn(count: int) -> None:
    layout = Layout(half=256, probes=PROBES, mirrored=True, paired=True)
    partner = layout.partners(count).tolist()
    drawn, complements = [0] * (len(PHASES) - 1), [0] * (len(PHASES) - 1)
    for number, other in enumerate(partner):
        first = min(number, other)
        phase = max(k for k, begin in enumerate(PHASES[:-1]) if begin <= first)
        (complements if other < number else drawn)[phase] += 1
    assert [round(count * k) for k in spent(count, layout)[0]] == drawn
    assert [round(count * k) for k in spent(count, layout)[1]] == complements

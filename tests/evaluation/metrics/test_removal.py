"""AOPC: against closed forms and the slow, obvious loop."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.metrics.removal import (
    aopc,
    insertion_score,
    paper_aopc,
    region_means,
    region_sums,
    removal_curves,
    removal_ranks,
    removed_counts,
)
from protopfaith.shapley import Players

KIND = {"dtype": torch.float64}


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), **KIND)


class Linear:
    """f(x) = sum of w * x for several w: what a pixel is worth is known."""

    def __init__(self, outputs: int, size: int = 6):
        self.weights = random(outputs, 2 * size * size, seed=1)

    def __call__(self, x: Tensor) -> Tensor:
        return x.flatten(1) @ self.weights.T

    def worth(self, image: Tensor, output: int) -> Tensor:
        """Of every pixel, (H, W), against a baseline of zero."""
        return (self.weights[output].view_as(image) * image).sum(0)


def curves_of(function: Linear, images: Tensor, maps: Tensor, outputs: Tensor, **options) -> Tensor:
    ranks = torch.stack([removal_ranks(one) for one in maps])
    return removal_curves(function, images, ranks, outputs, torch.zeros_like(images), **options)


def slow_curve(  # noqa: PLR0917
    function, image: Tensor, importance: Tensor, output: int, baseline: Tensor, steps: int
) -> Tensor:
    """One pixel after the other, one image after the other."""
    order = sorted(range(importance.numel()), key=lambda i: -float(importance.flatten()[i]))
    values = []
    for step in range(steps + 1):
        changed = image.clone().flatten(1)
        for pixel in order[: round(step * importance.numel() / steps)]:
            changed[:, pixel] = baseline.flatten(1)[:, pixel]
        values.append(function(changed.view_as(image)[None])[0, output])
    return torch.stack(values)


@pytest.mark.parametrize("steps", [1, 5, 36, 7])
@pytest.mark.parametrize("batch_size", [1, 13, None])
def test_curves_equal_the_slow_loop(steps: int, batch_size: int | None) -> None:
    function, images, maps = Linear(4), random(3, 2, 6, 6), random(3, 6, 6, seed=2)
    outputs, baselines = torch.tensor([2, 0, 3]), random(3, 2, 6, 6, seed=3)
    ranks = torch.stack([removal_ranks(one) for one in maps])
    fast = removal_curves(function, images, ranks, outputs, baselines, steps=steps, batch_size=batch_size)
    slow = [slow_curve(function, images[i], maps[i], int(outputs[i]), baselines[i], steps) for i in range(3)]
    assert torch.allclose(fast, torch.stack(slow))


def test_linear_model_has_its_closed_form() -> None:
    """Removing pixel t takes w_t x_t away, so s(0) - s(t) is the sum of the t largest worths removed."""
    function, images, outputs = Linear(3), random(3, 2, 6, 6), torch.arange(3)
    worths = torch.stack([function.worth(images[i], i) for i in range(3)])
    found = aopc(curves_of(function, images, -worths, outputs, steps=36))
    closed = (
        worths.flatten(1).sort(dim=1).values.cumsum(1).mean(1)
    )  # the most negative, "similar" ones, first
    assert torch.allclose(found, closed)
    total = curves_of(function, images, -worths, outputs, steps=36)
    assert paper_aopc(total, classes=3, prototypes_per_class=1) == pytest.approx(
        float(closed.sum()) * 36 / (3 + 1 + 36 - 1)
    )


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_nothing_beats_the_perfect_order_and_nothing_is_worse_than_its_reverse(seed: int) -> None:
    function, image, output = Linear(1), random(1, 2, 6, 6, seed=seed), torch.tensor([0])
    worth = function.worth(image[0], 0)[None]
    best, worst, other = (
        float(aopc(curves_of(function, image, maps, output, steps=12)))
        for maps in (-worth, worth, random(1, 6, 6, seed=seed + 1))
    )
    assert best <= other + 1e-9
    assert other <= worst + 1e-9
    inserted, backwards = (
        float(insertion_score(curves_of(function, image, maps, output, steps=12, insertion=True)))
        for maps in (-worth, worth)
    )
    assert inserted <= backwards + 1e-9


def test_insertion_runs_from_the_baseline_to_the_image() -> None:
    function, images, maps = Linear(1), random(1, 2, 6, 6), random(1, 6, 6, seed=4)
    curve = curves_of(function, images, maps, torch.tensor([0]), steps=9, insertion=True)[0]
    assert torch.allclose(curve[0], torch.zeros(1, **KIND)[0])
    assert torch.allclose(curve[-1], function(images)[0, 0])


@given(st.integers(1, 500), st.integers(1, 60))
def test_equal_shares_are_removed_whatever_the_resolution(pixels: int, steps: int) -> None:
    counts = removed_counts(pixels, steps)
    assert counts[0] == 0
    assert counts[-1] == pixels
    assert (counts - torch.arange(steps + 1, **KIND) * pixels / steps).abs().max() <= 0.5 + 1e-9


@given(st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_regions_go_whole_and_in_order_of_their_mean(seed: int) -> None:
    players, importance = Players.windows((6, 7), 3), random(6, 7, seed=seed)
    ranks = removal_ranks(importance, players)
    assert sorted(ranks.flatten().tolist()) == list(range(42))
    spans = [ranks[players.labels == player] for player in range(len(players))]
    assert all(int(span.max() - span.min()) == len(span) - 1 for span in spans)
    first = torch.tensor([int(span.min()) for span in spans])
    slow = torch.stack([importance[players.labels == p].mean() for p in range(len(players))])
    assert torch.allclose(region_means(importance, players), slow)
    assert first.argsort().tolist() == slow.argsort(descending=True).tolist()


def test_sums_and_means_of_regions_differ_by_their_size() -> None:
    players, maps = Players.windows((6, 7), 4), random(3, 6, 7)
    assert torch.allclose(region_sums(maps, players).sum(1), maps.sum((1, 2)))
    assert torch.allclose(region_means(maps, players) * players.sizes, region_sums(maps, players))


def test_equal_importance_is_drawn_not_read_from_the_top() -> None:
    flat = torch.zeros(8, 8)
    orders = [removal_ranks(flat, generator=torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    assert torch.equal(orders[0], orders[1])
    assert not torch.equal(orders[0], orders[2])


def test_early_share_takes_the_first_steps_only() -> None:
    curves = torch.tensor([[0.0, 1.0, 3.0, 9.0, 9.0, 9.0]])
    assert float(aopc(curves, 0.4)) == pytest.approx(-2.0)
    with pytest.raises(ProtoPFaithError, match=r"share of 0\.1"):
        aopc(curves, 0.1)


def test_errors_say_what_to_do() -> None:
    with pytest.raises(ProtoPFaithError, match="NaN"):
        removal_ranks(torch.full((2, 2), torch.nan))
    with pytest.raises(ProtoPFaithError, match="at least one"):
        removed_counts(10, 0)
    with pytest.raises(ProtoPFaithError, match="channels apart"):
        region_sums(torch.zeros(4, 4), Players.windows((4, 4), 2, channels=3))
    with pytest.raises(ProtoPFaithError, match="as many images"):
        removal_curves(
            Linear(1), random(1, 2, 6, 6), random(2, 6, 6), torch.zeros(1).long(), random(1, 2, 6, 6)
        )

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from protopfaith.explanation import Explainer, Explanation, RegionValues
from protopfaith.explanation.regions import agreement, region_values
from protopfaith.shapley import Game, Players, estimate
from protopfaith.show.heat import scale_of


def test_undecided_regions_are_those_of_the_attribution(explainer: Explainer) -> None:
    """Its rule bounds the share of wrong signs; without one, two standard errors decide."""
    game = Game(explainer.model.distances, torch.rand(3, 48, 48), Players.windows((48, 48), 16))
    found = estimate(game, budget=200)
    regions = region_values(found, 1, -1)
    assert torch.equal(regions.undecided, ~found.decided()[1])
    unknown = replace(regions, standard_errors=regions.standard_errors * torch.nan)
    assert not bool(unknown.undecided.any())


def test_undecided_regions_are_within_two_standard_errors(explanation: Explanation) -> None:
    regions = replace(explanation.class_map, sure=None)  # as earlier versions saved it
    for value, error, undecided in zip(
        regions.values.tolist(), regions.standard_errors.tolist(), regions.undecided.tolist(), strict=True
    ):
        assert undecided == (abs(value) < 2 * error)


def test_shares_inside_a_mask() -> None:
    players = Players.windows((4, 4), 2)
    regions = RegionValues(torch.tensor([-3.0, 1.0, -1.0, 0.0]), torch.zeros(4), -3.0, 0.0, players, -1)
    mask = torch.zeros(4, 4, dtype=torch.bool)
    mask[:2, :1] = True  # half of the first region, which has three quarters of the positive evidence
    assert regions.share_inside(mask) == pytest.approx(3 / 8)
    nothing = replace(regions, values=torch.ones(4))
    assert math.isnan(nothing.share_inside(mask))


@pytest.mark.parametrize("sign", [1, -1])
def test_channels_that_are_players_of_their_own_add_up_in_a_map(sign: int) -> None:
    generator = torch.Generator().manual_seed(0)
    players = Players.windows((8, 8), 2, channels=3)
    values, errors = torch.rand(2, 48, generator=generator, dtype=torch.float64)
    regions = RegionValues(values, errors, float(values.sum()), 0.0, players, sign)
    windows = values.reshape(3, 16).sum(0)
    assert torch.allclose(regions.map(), sign * Players.windows((8, 8), 2).to_map(windows))
    assert torch.allclose(regions.map((16, 16))[::2, ::2], regions.map())
    assert float(regions.map().sum()) / 4 == pytest.approx(sign * regions.total)  # windows of four pixels
    assert torch.allclose(regions.flat.standard_errors, errors.reshape(3, 16).square().sum(0).sqrt())
    assert scale_of([regions]) == pytest.approx(float(windows.max()))
    mask = torch.zeros(8, 8, dtype=torch.bool)
    mask[:, :4] = True
    inside = windows.reshape(4, 4)[:, :2].sum() / windows.sum()
    share = regions.share_inside(mask)
    assert math.isnan(share) if sign < 0 else share == pytest.approx(float(inside))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 12))
def test_players_of_any_shape_in_every_channel_keep_the_total(seed: int, channels: int, most: int) -> None:
    """Against every pixel and channel looked at by itself; errors through the values they belong to."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, most, (channels, 5, 4), generator=generator).unique(return_inverse=True)[1]
    players = Players.from_labels(labels)
    values, errors = torch.randn(2, len(players), generator=generator, dtype=torch.float64)
    regions = RegionValues(values, errors.abs(), 0.0, 0.0, players, 1)
    flat = regions.flat
    assert float(flat.values.sum()) == pytest.approx(float(values.sum()))
    pixels = [[tuple(labels[:, r, c].tolist()) for c in range(4)] for r in range(5)]
    for r, c in itertools.product(range(5), range(4)):
        region = int(flat.players.labels[r, c])
        same = [(i, j) for i, j in itertools.product(range(5), range(4)) if pixels[i][j] == pixels[r][c]]
        assert (flat.players.labels == region).sum() == len(same)
        share = torch.zeros(len(players), dtype=torch.float64)
        for i, j in same:
            for player in pixels[i][j]:
                share[player] += 1 / int((labels == player).sum())
        assert float(regions.map()[r, c]) == pytest.approx(float(share @ values))
        assert float(flat.standard_errors[region]) == pytest.approx(float((share * errors).norm()))


def test_agreement_compares_what_both_decide() -> None:
    players = Players.windows((4, 4), 2)
    errors = torch.full((4,), 0.4)
    first = RegionValues(torch.tensor([1.0, -1.0, 0.1, 2.0]), errors, 2.1, 0.0, players, 1)
    second = replace(first, values=torch.tensor([1.0, 1.0, 5.0, 2.0]))
    found = agreement(first, second)
    assert found.compared == 3
    assert found.same_sign == pytest.approx(2 / 3)
    expected = float(torch.corrcoef(torch.stack([first.values, second.values]))[0, 1])
    assert found.correlation == pytest.approx(expected)
    constant = agreement(first, replace(first, values=torch.full((4,), 0.1)))
    assert constant.correlation == 0  # reports print it: a number, not NaN

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from protopfaith.explanation import Explanation
from protopfaith.explanation.regions import RegionValues
from protopfaith.shapley import Players
from protopfaith.show.heat import edges, scale_of, shown_evidence, speaking
from protopfaith.show.wording.places import ENOUGH, PARTS, SCATTERED, lies, part_of, place_for, share_in


def spot(row: float, column: float, size: int = 60) -> torch.Tensor:
    """An image whose weight is in one pixel."""
    weights = torch.zeros(size, size)
    weights[int(row * size), int(column * size)] = 1
    return weights


def drawn(seed: int, players: Players) -> RegionValues:
    """A map with a few decided regions of both signs, near to one another or not."""
    draw = torch.Generator().manual_seed(seed)
    centers = (players.centers[:, 1:].double() + 0.5) / players.labels.shape[-1]
    values = torch.zeros(len(players), dtype=torch.float64)
    for sign in (1, -1):
        middle, width = torch.rand(2, generator=draw), 0.05 + 0.4 * torch.rand(1, generator=draw)
        values += sign * torch.exp(-(centers - middle).square().sum(1) / (2 * width.square()))
    sure = values.abs() > 0.2
    return RegionValues(values, torch.full_like(values, 0.1), float(values.sum()), 0.0, players, 1, sure)


@pytest.mark.parametrize(
    ("point", "words"),
    [
        ((0.1, 0.1), "in the upper left"),
        ((0.5, 0.5), "in the center"),
        ((0.3, 0.3), "in the upper left"),
        ((0.5, 0.9), "in the middle right"),
        ((0.98, 0.5), "in the lower middle"),
    ],
)
def test_a_place_has_a_name(point: tuple[float, float], words: str) -> None:
    part = part_of(spot(*point))
    assert part is not None
    assert part.words == words


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("players", [Players.windows((48, 48), 8), Players.windows((60, 60), 20)], ids=len)
def test_the_part_that_is_named_has_what_is_colored(seed: int, sign: int, players: Players) -> None:
    regions = drawn(seed, players)
    weights = speaking(regions, sign)
    place = place_for(regions, sign)
    if not weights.any():
        assert place is None
        return
    # Only what a line goes around has weight, and the strongest of its sign has.
    around = [edge.members for edge in edges(regions, scale_of([regions])) if edge.sign == sign]
    assert all(any(bool(group[i]) for group in around) for i in weights.nonzero().flatten().tolist())
    assert int(weights.argmax()) == int((sign * shown_evidence(regions)).argmax())
    per_pixel = weights[players.labels] / torch.bincount(players.labels.flatten())[players.labels]
    shares = {part.words: share_in(part, per_pixel) for part in PARTS}
    areas = {part.words: part.area for part in PARTS}
    if place == SCATTERED:
        assert max(shares.values()) < ENOUGH
    else:
        assert shares[place] >= ENOUGH
        assert all(areas[place] <= areas[words] for words, share in shares.items() if share >= ENOUGH)


@pytest.mark.parametrize("corners", [((0, 0), (5, 5)), ((0, 5), (5, 0))])
def test_of_scattered_regions_the_strongest_is_named(corners: tuple) -> None:
    players = Players.windows((48, 48), 8)
    grid = torch.zeros(6, 6, dtype=torch.float64)
    (strongest, other), centers = corners, players.centers[:, 1:].long() // 8
    grid[strongest], grid[other] = 1.0, 0.9
    values = grid[centers[:, 0], centers[:, 1]]
    regions = RegionValues(
        values, torch.full_like(values, 0.01), float(values.sum()), 0.0, players, 1, values > 0
    )
    row, column = strongest
    corner = f"in the {'lower' if row else 'upper'} {'right' if column else 'left'}"
    assert lies(regions) == f"lies in many places of the image, strongest {corner}"
    assert lies(regions, sign=-1) is None


def test_a_share_is_that_of_the_pixels() -> None:
    weights = torch.rand(12, 12, generator=torch.Generator().manual_seed(0))
    for part in PARTS:
        rows, columns = (
            slice(round(12 * span[0]), round(12 * span[1])) for span in (part.rows, part.columns)
        )
        if all((12 * end) % 1 < 1e-9 for end in (*part.rows, *part.columns)):
            expected = float(weights[rows, columns].sum() / weights.sum())
            assert share_in(part, weights) == pytest.approx(expected)


def test_scattered_evidence_has_no_place() -> None:
    corners = spot(0.1, 0.1) + spot(0.9, 0.9) + spot(0.1, 0.9) + spot(0.9, 0.1)
    assert part_of(corners) is None


def test_nothing_decided_is_nowhere(explanation: Explanation) -> None:
    mine = explanation.class_map
    vague = replace(mine, standard_errors=torch.full_like(mine.values, 1e9), sure=None)
    assert place_for(vague) is None
    assert lies(vague) is None

"""Colors for players, such that no two of one color are ever seen by the same unit of a convolution."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import torch
from torch import Tensor


def color_players(labels: Tensor, reach: Sequence[int] | None) -> Tensor:
    """A color 0, 1, ... for every player, ``(n,)``, from the label image ``(C or 1, *spatial)``.

    ``reach`` is the receptive field's extent along each spatial dimension; None, where it is not known,
    gives every player a color of its own. Windows on a grid are colored periodically, other shapes
    greedily.
    """
    n = int(labels.max()) + 1
    if reach is None or len(reach) != labels.dim() - 1:
        return torch.arange(n, device=labels.device)
    grid = _color_grid(labels, reach)
    return grid if grid is not None else _color_greedily(labels, reach, n)


def spread_apart(labels: Tensor, count: int) -> Tensor:
    """At most ``count`` groups of players, (n,), whose members lie far from one another, from labels (H, W)
    or (C, H, W)."""
    labels = labels.reshape(-1, *labels.shape[-2:])
    grid = _grid(labels)
    if grid is None:
        return _farthest_first(labels, count)
    row, column = grid
    side = int(count**0.5)
    return row % side * side + column % side


def _color_grid(labels: Tensor, reach: Sequence[int]) -> Tensor | None:
    """Row and column numbers modulo the smallest safe period, where the players form a grid of windows."""
    grid = _grid(labels) if len(reach) == 2 else None
    if grid is None:
        return None
    plane = labels[0]
    down, right = _period(grid[0][plane[:, 0]], reach[0]), _period(grid[1][plane[0]], reach[1])
    return grid[0] % down * right + grid[1] % right


def _grid(labels: Tensor) -> tuple[Tensor, Tensor] | None:
    """Row and column of every player, where the players form a grid of windows."""
    if len(labels) != 1:
        return None
    plane = labels[0]
    columns = int(plane[0].max()) + 1
    number = torch.arange(int(plane.max()) + 1, device=labels.device)
    row, column = number // columns, number % columns
    is_grid = torch.equal(plane, row[plane[:, 0]][:, None] * columns + plane[0])
    return (row, column) if is_grid else None


def _period(bands: Tensor, reach: int) -> int:
    """How many bands apart two bands must be for no window of ``reach`` to touch both."""
    first = np.unique(bands.cpu().numpy(), return_index=True)[1]
    last = np.append(first[1:], len(bands)) - 1
    for period in range(1, len(first)):
        if (first[period:] - last[:-period] >= reach).all():
            return period
    return len(first)


def _color_greedily(labels: Tensor, reach: Sequence[int], n: int) -> Tensor:
    """The smallest color that no lower-numbered neighbor has."""
    edges = _neighbors(labels, reach, n).cpu().numpy()
    later, earlier = edges // n, edges % n
    ends = np.searchsorted(later, np.arange(n + 1))
    colors = np.zeros(n, dtype=np.int64)
    for player in range(n):
        used = set(colors[earlier[ends[player] : ends[player + 1]]].tolist())
        colors[player] = next(color for color in range(len(used) + 1) if color not in used)
    return torch.from_numpy(colors).to(labels.device)


def _neighbors(labels: Tensor, reach: Sequence[int], n: int) -> Tensor:
    """Pairs of players that some window of ``reach`` touches, as sorted numbers ``larger * n + smaller``."""
    sizes = labels.shape[1:]
    steps = [range(-min(r, s) + 1, min(r, s)) for r, s in zip(reach, sizes, strict=True)]
    found = []
    for offset in product(*steps):
        if offset < (0,) * len(offset):
            continue  # its mirror image finds the same pairs
        here = [slice(max(0, -o), s - max(0, o)) for o, s in zip(offset, sizes, strict=True)]
        there = [slice(max(0, o), s + min(0, o)) for o, s in zip(offset, sizes, strict=True)]
        a, b = labels[(slice(None), *here)][:, None], labels[(slice(None), *there)][None]
        larger, smaller = torch.maximum(a, b), torch.minimum(a, b)
        found.append((larger * n + smaller)[larger != smaller].unique())
    return torch.cat(found).unique()


def _farthest_first(labels: Tensor, count: int) -> Tensor:
    """Player after player joins the group whose nearest member is farthest away."""
    centers = _centers(labels)
    groups = np.zeros(len(centers), dtype=np.int64)
    for player in range(1, len(centers)):
        nearest = np.full(count, np.inf)
        distance = np.square(centers[:player] - centers[player]).sum(1)
        np.minimum.at(nearest, groups[:player], distance)
        groups[player] = nearest.argmax()
    return torch.from_numpy(groups).to(labels.device)


def _centers(labels: Tensor) -> np.ndarray:
    """Where each player is on average, (n, spatial dimensions)."""
    grids = np.meshgrid(*(np.arange(size) for size in labels.shape), indexing="ij")[1:]
    flat = labels.reshape(-1).cpu().numpy()
    counts = np.bincount(flat)
    return np.stack([np.bincount(flat, grid.reshape(-1)) / counts for grid in grids], 1)

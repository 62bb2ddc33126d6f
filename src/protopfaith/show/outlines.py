"""Regions of a label image as outlines, which stay sharp at any size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Point = tuple[int, int]


@dataclass(frozen=True, eq=False)
class LabelGrid:
    """A label image without its repeated rows and columns: windows shrink to one cell each.

    Cell (i, j) covers the pixels from `ys[i]` to `ys[i + 1]` and from `xs[j]` to `xs[j + 1]`.
    """

    labels: np.ndarray  # (rows, columns)
    xs: list[int]
    ys: list[int]

    @staticmethod
    def of(labels: np.ndarray) -> LabelGrid:
        """The grid of a label image (H, W).

        >>> LabelGrid.of(np.array([[0, 0, 1], [0, 0, 1]])).labels.tolist()
        [[0, 1]]
        """
        rows = _changes((labels[1:] != labels[:-1]).any(axis=1))
        columns = _changes((labels[:, 1:] != labels[:, :-1]).any(axis=0))
        height, width = labels.shape
        return LabelGrid(labels[np.ix_(rows, columns)], [*columns, width], [*rows, height])

    def borders(self, members: np.ndarray) -> list[list[Point]]:
        """The closed lines around all regions with `members[label]`, together: corners (x, y) in pixels."""
        return [[(self.xs[x], self.ys[y]) for x, y in loop] for loop in _loops(members[self.labels])]

    def outline(self, members: np.ndarray) -> str:
        """The same as an SVG path."""
        return "".join(_path(loop) for loop in self.borders(members))

    def outlines(self) -> list[str]:
        """The border of every region, in the order of labels."""
        count = int(self.labels.max()) + 1
        paths = []
        for label in range(count):
            rows, columns = np.nonzero(self.labels == label)
            top, left = int(rows.min()), int(columns.min())
            inside = self.labels[top : int(rows.max()) + 1, left : int(columns.max()) + 1] == label
            loops = [[(self.xs[x + left], self.ys[y + top]) for x, y in loop] for loop in _loops(inside)]
            paths.append("".join(_path(loop) for loop in loops))
        return paths


def _path(corners: list[Point]) -> str:
    """Every line is horizontal or vertical."""
    steps, (_, y) = [f"M{corners[0][0]} {corners[0][1]}"], corners[0]
    for to_x, to_y in corners[1:]:
        steps.append(f"H{to_x}" if to_y == y else f"V{to_y}")
        y = to_y
    return "".join(steps) + "z"


def _changes(different: np.ndarray) -> list[int]:
    return [0, *(np.flatnonzero(different) + 1).tolist()]


def _loops(inside: np.ndarray) -> list[list[Point]]:
    """The corners of the borders of a set of cells, one list per closed line, the inside to the right."""
    padded = np.pad(inside, 1)
    after: dict[Point, list[Point]] = {}
    for (row_step, column_step), start, end in _EDGES:
        rows, columns = np.nonzero(padded & ~np.roll(padded, (-row_step, -column_step), axis=(0, 1)))
        for x, y in zip((columns - 1).tolist(), (rows - 1).tolist(), strict=True):
            after.setdefault((x + start[0], y + start[1]), []).append((x + end[0], y + end[1]))
    loops = []
    while after:
        first = point = next(iter(after))
        before, loop = None, []
        while True:
            following = _turn(before, point, after)
            if before is None or not _straight(before, point, following):
                loop.append(point)
            before, point = point, following
            if point == first:
                break
        if _straight(before, point, loop[1]) and len(loop) > 2:
            loop = loop[1:]
        loops.append(loop)
    return loops


# Which neighbor is missing (row, column), and the corners of the edge there, with the cell to its right.
_EDGES = (
    ((-1, 0), (0, 0), (1, 0)),
    ((0, 1), (1, 0), (1, 1)),
    ((1, 0), (1, 1), (0, 1)),
    ((0, -1), (0, 1), (0, 0)),
)


def _turn(before: Point | None, point: Point, after: dict[Point, list[Point]]) -> Point:
    """Takes the next edge; where cells touch at a corner, the one that turns right, around its own."""
    choices = after[point]
    taken = 0
    if before is not None and len(choices) > 1:
        dx, dy = point[0] - before[0], point[1] - before[1]
        right = (point[0] - dy, point[1] + dx)
        taken = choices.index(right) if right in choices else 0
    following = choices.pop(taken)
    if not choices:
        del after[point]
    return following


def _straight(a: Point, b: Point, c: Point) -> bool:
    return (a[0] == b[0] == c[0]) or (a[1] == b[1] == c[1])

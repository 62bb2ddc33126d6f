"""A sheet of paper to draw on, in inches from its top left corner: pictures, lines and text of one figure.

One set of axes holds everything: dozens of them would take matplotlib several times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from protopfaith.show.colors import STOPS, between

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Place = tuple[float, float, float, float]  # left, top, width, height


class Sheet:
    """A figure of `width` x `height` inches."""

    def __init__(self, width: float, height: float):
        from matplotlib.figure import Figure

        self.figure: Figure = Figure(figsize=(width, height))
        self.axes: Any = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set_axis_off()
        self.axes.set_autoscale_on(False)
        self.axes.set(xlim=(0, width), ylim=(height, 0))

    def image(self, image: np.ndarray, place: Place, *, opacity: float = 1.0) -> None:
        """An image (H x W x 3, in 0..1) in a thin frame."""
        left, top, width, height = place
        edges = (left, left + width, top + height, top)
        self.axes.imshow(
            np.clip(image, 0, 1), extent=edges, aspect="auto", interpolation="nearest", alpha=opacity
        )
        self.lines([[(0, 0), (1, 0), (1, 1), (0, 1)]], place, (1, 1), color="black", width=0.4)

    def lines(
        self,
        loops: Sequence[Sequence[tuple[float, float]]],
        place: Place,
        size: tuple[int, int],
        *,
        color: str,
        width: float,
        opacity: float = 1.0,
        dashed: bool = False,
    ) -> None:
        """Closed lines over an image of `size` (width, height) pixels: lists of corners in pixels."""
        from matplotlib.collections import PolyCollection

        self.axes.add_collection(
            PolyCollection(
                [self._inches(loop, place, size) for loop in loops],
                facecolors="none",
                edgecolors=color,
                linewidths=width,
                linestyles="--" if dashed else "-",
                alpha=opacity,
            ),
            autolim=False,
        )

    def hatch(
        self, loops: Sequence[Sequence[tuple[float, float]]], place: Place, size: tuple[int, int]
    ) -> None:
        """Hatched areas; those inside another one are holes."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        paths = [Path(self._inches([*loop, loop[0]], place, size), closed=True) for loop in loops]
        if paths:
            area = Path.make_compound_path(*paths)
            self.axes.add_patch(
                PathPatch(area, fill=False, hatch="//////", linewidth=0, edgecolor="#333333", alpha=0.6)
            )

    def text(self, x: float, y: float, text: str, size: float = 8, **options: Any) -> None:
        """Text whose top left corner is at (x, y), unless `options` say otherwise."""
        self.axes.text(x, y, text, fontsize=size, **{"va": "top", **options})

    def color_bar(
        self,
        place: Place,
        ends: tuple[str, str],
        *,
        label: str = "",
        stops: tuple[str, ...] = STOPS,
        middle: str = "",
    ) -> None:
        """A scale with its ends below, and what it is."""
        left, top, width, height = place
        self.image(between(stops, np.linspace(0, 1, 256))[None], place)
        for share, text in ((0.0, ends[0]), (0.5, middle), (1.0, ends[1])):
            self.text(left + share * width, top + height + 0.03, text, 7, ha="center")
        self.text(left + width / 2, top + height + 0.18, label, 7, ha="center", linespacing=1.35)

    @staticmethod
    def _inches(
        loop: Sequence[tuple[float, float]], place: Place, size: tuple[int, int]
    ) -> list[tuple[float, float]]:
        left, top, width, height = place
        return [(left + x / size[0] * width, top + y / size[1] * height) for x, y in loop]

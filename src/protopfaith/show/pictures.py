"""Pictures of a page: images that are stored once, maps above them, and the numbers of their regions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from protopfaith.explanation.regions import RegionValues
from protopfaith.show.colors import hexadecimal, overlay, plain_colors
from protopfaith.show.encoding import data_uri, photo_uri, png
from protopfaith.show.heat import Edge, decided, edges, shown_evidence
from protopfaith.show.outlines import LabelGrid

SMALLEST = 3  # parts that an image's side has at most where one of them is shown alone
COARSEST = 56  # pixels of ProtoPNet's map, which is smooth: the browser scales it up again


@dataclass(frozen=True)
class Meaning:
    """What the values of a map are: their unit, and what a positive and a negative one says."""

    unit: str
    plus: str
    minus: str


@dataclass(frozen=True)
class StoredImage:
    """An image that pictures refer to by its number."""

    number: int
    uri: str
    width: int
    height: int


@dataclass(frozen=True)
class Fill:
    """A colored region."""

    player: int
    color: str
    opacity: float


@dataclass(frozen=True)
class Heat:
    """Our map: regions in color, lines around those that are decided, and what is undecided."""

    regions: int  # the number of its outlines
    transform: str  # from the regions' pixels to those of the image
    fills: tuple[Fill, ...]
    edges: tuple[tuple[str, str], ...]  # kind of line, path
    undecided: str


@dataclass(frozen=True)
class Smooth:
    """ProtoPNet's map, and the box of its crop (x, y, width, height)."""

    uri: str
    box: tuple[float, float, float, float]


@dataclass(frozen=True)
class Border:
    """A line around a part of the image, in pixels that `transform` takes to those of the image."""

    path: str
    transform: str


@dataclass(frozen=True)
class DrawnPicture:
    """An image and what lies over it."""

    image: StoredImage
    alt: str
    heat: Heat | None = None
    smooth: Smooth | None = None
    box: tuple[float, float, float, float] | None = None
    border: Border | None = None  # of a mask
    map: int | None = None  # its number among the maps that the page's script knows
    title: str = ""


@dataclass
class Pictures:
    """Makes the pictures of one page and gathers what they share."""

    images: list[StoredImage] = field(default_factory=list)
    outlines: list[list[str]] = field(default_factory=list)
    maps: list[dict[str, Any]] = field(default_factory=list)
    labels: list[dict[str, Any]] = field(default_factory=list)
    _grids: list[LabelGrid] = field(default_factory=list)
    _known: dict[bytes, int] = field(default_factory=dict)

    def plain(self, pixels: Tensor, alt: str, title: str = "") -> DrawnPicture:
        return DrawnPicture(self.image(pixels), alt, title=title)

    def boxed(self, pixels: Tensor, alt: str, box: Sequence[float], title: str = "") -> DrawnPicture:
        """An image with a frame around (left, top, right, bottom)."""
        return DrawnPicture(self.image(pixels), alt, box=_frame(box), title=title)

    def cropped(self, pixels: Tensor, alt: str, box: Sequence[int]) -> DrawnPicture:
        """The square part of an image around (left, top, right, bottom), with enough of it to be seen."""
        left, top, right, bottom = square_around(box, (pixels.shape[-2], pixels.shape[-1]))
        return DrawnPicture(self.image(pixels[:, top:bottom, left:right].contiguous()), alt)

    def bordered(self, pixels: Tensor, alt: str, mask: Tensor) -> DrawnPicture:
        """An image with a line around `mask` (bool, H x W)."""
        grid = LabelGrid.of(mask.numpy().astype(int))
        border = Border(grid.outline(np.array([False, True])), _transform(mask, pixels))
        return DrawnPicture(self.image(pixels), alt, border=border)

    def ours(
        self, pixels: Tensor, regions: RegionValues, scale: float, alt: str, meaning: Meaning | None = None
    ) -> DrawnPicture:
        """Our map over an image; with a `meaning`, pointing at a region tells its value."""
        regions = regions.flat
        number = self._regions(regions.players.labels)
        grid, sure = self._grids[number], decided(regions).numpy()
        evidence = shown_evidence(regions).numpy()
        heat = Heat(
            number,
            _transform(regions.players.labels, pixels),
            _fills(evidence, scale),
            tuple((_kind(edge), grid.outline(edge.members)) for edge in edges(regions, scale)),
            grid.outline(~sure) if not sure.all() else "",
        )
        told = None if meaning is None else self._tell(regions, number, meaning)
        return DrawnPicture(self.image(pixels), alt, heat=heat, map=told)

    def theirs(
        self, pixels: Tensor, activation: Tensor, limits: tuple[float, float], box: Sequence[float], alt: str
    ) -> DrawnPicture:
        """ProtoPNet's map over an image, with the box of its crop."""
        height, width = activation.shape
        factor = min(1.0, COARSEST / max(height, width))
        size = (max(1, round(height * factor)), max(1, round(width * factor)))
        small = interpolate(activation[None, None].float(), size, mode="area")[0, 0].numpy()
        uri = data_uri(png(plain_colors(small, *limits)))
        return DrawnPicture(self.image(pixels), alt, smooth=Smooth(uri, _frame(box)))

    def image(self, pixels: Tensor) -> StoredImage:
        """Stores an image, once."""
        key = b"image" + str(tuple(pixels.shape)).encode() + pixels.numpy().tobytes()
        if key not in self._known:
            self._known[key] = len(self.images)
            height, width = pixels.shape[-2:]
            self.images.append(StoredImage(len(self.images), photo_uri(pixels), width, height))
        return self.images[self._known[key]]

    @property
    def stops(self) -> list[dict[str, Any]]:
        """The colors of a legend, from the least to the most."""
        values = np.linspace(-1, 1, 13)
        colors = overlay(np.where(values == 0, 1e-9, values), 1.0)
        on_paper = 1 - colors[:, 3:] * (1 - colors[:, :3])
        return [{"offset": round(i / 12, 3), "color": hexadecimal(color)} for i, color in enumerate(on_paper)]

    def data(self) -> dict[str, Any]:
        """What the page's script reads."""
        return {"maps": self.maps, "labels": self.labels}

    def _tell(self, regions: RegionValues, number: int, meaning: Meaning) -> int:
        """Numbers for those who point at a region."""
        self.maps.append(
            {
                "labels": number,
                "values": [_short(v) for v in regions.evidence.tolist()],
                "errors": [None if math.isnan(e) else _short(e) for e in regions.standard_errors.tolist()],
                "decided": decided(regions).int().tolist(),
                "unit": meaning.unit,
                "plus": meaning.plus,
                "minus": meaning.minus,
            }
        )
        return len(self.maps) - 1

    def _regions(self, labels: Tensor) -> int:
        """Stores the regions of a label image, once."""
        key = b"labels" + str(tuple(labels.shape)).encode() + labels.numpy().tobytes()
        if key not in self._known:
            grid = LabelGrid.of(labels.numpy())
            players, lengths = torch.unique_consecutive(
                torch.from_numpy(grid.labels).flatten(), return_counts=True
            )
            runs = torch.stack([players, lengths], 1).flatten().tolist()
            self._known[key] = len(self._grids)
            self._grids.append(grid)
            self.outlines.append(grid.outlines())
            self.labels.append({"xs": grid.xs, "ys": grid.ys, "runs": runs})
        return self._known[key]


def square_around(box: Sequence[int], size: tuple[int, int]) -> tuple[int, int, int, int]:
    """The square (left, top, right, bottom) around a box, no smaller than a third of the image's shorter side
    and no larger than that, within the image.

    >>> square_around((0, 10, 4, 12), (90, 120))
    (0, 0, 30, 30)
    """
    left, top, right, bottom = box
    height, width = size
    side = min(max(right - left, bottom - top, round(min(size) / SMALLEST)), *size)
    x = min(max((left + right - side) // 2, 0), width - side)
    y = min(max((top + bottom - side) // 2, 0), height - side)
    return x, y, x + side, y + side


def _fills(evidence: np.ndarray, scale: float) -> tuple[Fill, ...]:
    colors = overlay(evidence, scale)
    return tuple(
        Fill(player, hexadecimal(colors[player]), round(float(colors[player, 3]), 2))
        for player in np.flatnonzero(evidence).tolist()
    )


def _transform(small: Tensor, pixels: Tensor) -> str:
    """From the pixels of a label image or a mask (H, W) to those of the image that is shown."""
    across, down = (pixels.shape[i] / small.shape[i] for i in (-1, -2))
    return f"scale({across:.6g} {down:.6g})"


def _kind(edge: Edge) -> str:
    return ("plus" if edge.sign > 0 else "minus") + (" strong" if edge.strong else "")


def _frame(box: Sequence[float]) -> tuple[float, float, float, float]:
    left, top, right, bottom = box
    return left, top, right - left, bottom - top


def _short(value: float) -> float:
    return float(f"{value:.4g}")

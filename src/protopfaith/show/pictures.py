"""Pictures of a page: images as data URIs, heat maps above them, and the numbers that hovering shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import interpolate

from protopfaith.explanation.picture import to_pil
from protopfaith.explanation.regions import RegionValues
from protopfaith.show.colors import data_uri, hatching, overlay, png, sequential

LARGEST = 640  # pixels of an image's longer side in a page
COARSEST = 56  # pixels of ProtoPNet's map, which is smooth: the browser scales it up again


@dataclass(frozen=True)
class Box:
    """A frame in percent of the picture."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Picture:
    """An image and what lies over it; all images are data URIs."""

    image: str
    alt: str
    ours: str | None = None
    hatching: str | None = None
    theirs: str | None = None
    box: Box | None = None
    map: int | None = None  # its number among the maps that the page's script knows
    title: str = ""


@dataclass(frozen=True)
class Meaning:
    """What the values of a map are: their unit, and what a positive and a negative one says."""

    unit: str
    plus: str
    minus: str


@dataclass
class Pictures:
    """Makes the pictures of one page and gathers what its script needs to know."""

    maps: list[dict[str, Any]] = field(default_factory=list)
    labels: list[dict[str, Any]] = field(default_factory=list)
    _known: dict[bytes, int] = field(default_factory=dict)

    def plain(self, pixels: Tensor, alt: str) -> Picture:
        return Picture(image_uri(pixels), alt)

    def ours(
        self, pixels: Tensor, regions: RegionValues, scale: float, alt: str, meaning: Meaning | None = None
    ) -> Picture:
        """Our map over an image; with a `meaning`, hovering tells the values."""
        regions = regions.flat  # one value for hovering over a pixel
        labels = regions.players.labels.numpy()
        lines = None
        if bool(regions.undecided.any()):
            factor = max(1, 384 // max(labels.shape))
            lines = data_uri(png(hatching(labels, regions.undecided.numpy(), factor)))
        return Picture(
            image_uri(pixels),
            alt,
            ours=data_uri(png(overlay(regions.map().numpy(), scale))),
            hatching=lines,
            map=None if meaning is None else self._add(regions, meaning),
        )

    def theirs(
        self,
        pixels: Tensor,
        activation: Tensor,
        limits: tuple[float, float],
        box: tuple[int, int, int, int],
        alt: str,
    ) -> Picture:
        """ProtoPNet's map over an image, with the box of its crop."""
        height, width = activation.shape
        factor = min(1.0, COARSEST / max(height, width))
        size = (max(1, round(height * factor)), max(1, round(width * factor)))
        small = interpolate(activation[None, None].float(), size, mode="area")[0, 0].numpy()
        share = (small - limits[0]) / max(limits[1] - limits[0], 1e-12)
        heat = data_uri(png(np.asarray(sequential()(np.clip(share, 0, 1)))[..., :3]))
        return Picture(image_uri(pixels), alt, theirs=heat, box=frame(box, (height, width)))

    def data(self) -> dict[str, Any]:
        """What the page's script reads."""
        return {"maps": self.maps, "labels": self.labels}

    def _add(self, regions: RegionValues, meaning: Meaning) -> int:
        errors = [None if math.isnan(e) else _short(e) for e in regions.standard_errors.tolist()]
        self.maps.append(
            {
                "labels": self._label_image(regions.players.labels),
                "values": [_short(v) for v in regions.evidence.tolist()],
                "errors": errors,
                "unit": meaning.unit,
                "plus": meaning.plus,
                "minus": meaning.minus,
            }
        )
        return len(self.maps) - 1

    def _label_image(self, labels: Tensor) -> int:
        key = labels.numpy().tobytes()
        if key not in self._known:
            players, lengths = torch.unique_consecutive(labels.flatten(), return_counts=True)
            runs = torch.stack([players, lengths], 1).flatten().tolist()
            self._known[key] = len(self.labels)
            self.labels.append({"width": labels.shape[1], "height": labels.shape[0], "runs": runs})
        return self._known[key]


def image_uri(pixels: Tensor) -> str:
    """An image (uint8, C x H x W), no larger than a page needs."""
    image = to_pil(pixels)
    if max(image.size) > LARGEST:
        image.thumbnail((LARGEST, LARGEST), Image.Resampling.LANCZOS)
    return data_uri(png(np.asarray(image) / 255))


def frame(box: tuple[int, int, int, int], size: Sequence[int]) -> Box:
    """A frame around (left, top, right, bottom) in an image of `size` (height, width)."""
    left, top, right, bottom = box
    height, width = size
    shares = (left / width, top / height, (right - left) / width, (bottom - top) / height)
    return Box(*(round(100 * share, 2) for share in shares))


def _short(value: float) -> float:
    return float(f"{value:.5g}")

"""Pictures of a page: images as data URIs, heat maps above them, and the numbers that hovering shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
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


@dataclass
class Pictures:
    """Makes the pictures of one page and gathers what its script needs to know."""

    maps: list[dict[str, Any]] = field(default_factory=list)
    labels: list[dict[str, Any]] = field(default_factory=list)
    _known: dict[bytes, int] = field(default_factory=dict)

    def plain(self, pixels: Tensor, alt: str) -> str:
        return f'<div class="picture">{base_image(pixels, alt)}</div>'

    def ours(
        self, pixels: Tensor, regions: RegionValues, scale: float, alt: str, words: tuple[str, str, str]
    ) -> str:
        """Our map over an image. `words`: the unit, and what a positive and a negative value mean."""
        regions = regions.flat  # one value for hovering over a pixel
        number = self._add(regions, words)
        labels = regions.players.labels.numpy()
        heat = data_uri(png(overlay(regions.map().numpy(), scale)))
        layers = f'<img class="layer ours" alt="" src="{heat}">'
        if bool(regions.undecided.any()):
            factor = max(1, 384 // max(labels.shape))
            lines = data_uri(png(hatching(labels, regions.undecided.numpy(), factor)))
            layers += f'<img class="layer hatch" alt="" src="{lines}">'
        return (
            f'<div class="picture heat hoverable" data-map="{number}">{base_image(pixels, alt)}{layers}</div>'
        )

    def theirs(
        self,
        pixels: Tensor,
        activation: Tensor,
        limits: tuple[float, float],
        box: tuple[int, int, int, int],
        alt: str,
    ) -> str:
        """ProtoPNet's map over an image, with the box of its crop."""
        height, width = activation.shape
        factor = min(1.0, COARSEST / max(height, width))
        size = (max(1, round(height * factor)), max(1, round(width * factor)))
        small = interpolate(activation[None, None].float(), size, mode="area")[0, 0].numpy()
        share = (small - limits[0]) / max(limits[1] - limits[0], 1e-12)
        heat = data_uri(png(np.asarray(sequential()(np.clip(share, 0, 1)))[..., :3]))
        layers = f'<img class="layer theirs" alt="" src="{heat}">{box_html(box, (height, width))}'
        return f'<div class="picture heat">{base_image(pixels, alt)}{layers}</div>'

    def data(self) -> dict[str, Any]:
        """What the page's script reads."""
        return {"maps": self.maps, "labels": self.labels}

    def _add(self, regions: RegionValues, words: tuple[str, str, str]) -> int:
        unit, plus, minus = words
        errors = [None if math.isnan(e) else _short(e) for e in regions.standard_errors.tolist()]
        self.maps.append(
            {
                "labels": self._label_image(regions.players.labels),
                "values": [_short(v) for v in regions.evidence.tolist()],
                "errors": errors,
                "unit": unit,
                "plus": plus,
                "minus": minus,
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


def base_image(pixels: Tensor, alt: str) -> str:
    """An image (uint8, C x H x W), no larger than a page needs."""
    image = to_pil(pixels)
    if max(image.size) > LARGEST:
        image.thumbnail((LARGEST, LARGEST), Image.Resampling.LANCZOS)
    uri = data_uri(png(np.asarray(image) / 255))
    return f'<img class="base" alt="{escape(alt)}" src="{uri}">'


def box_html(box: tuple[int, int, int, int], size: Sequence[int]) -> str:
    """A frame around (left, top, right, bottom) in an image of `size` (height, width)."""
    left, top, right, bottom = box
    height, width = size
    place = (
        f"left:{100 * left / width:.2f}%;top:{100 * top / height:.2f}%;"
        f"width:{100 * (right - left) / width:.2f}%;height:{100 * (bottom - top) / height:.2f}%"
    )
    return f'<div class="box" style="{place}"></div>'


def _short(value: float) -> float:
    return float(f"{value:.5g}")

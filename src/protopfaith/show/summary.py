"""The page about very many explanations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image
from torch import Tensor

from protopfaith.explanation.bulk.dataset import Bulk
from protopfaith.explanation.bulk.summary import Summary
from protopfaith.explanation.bulk.thumbnails import thumbnails
from protopfaith.explanation.regions import scaled_labels
from protopfaith.shapley import Players
from protopfaith.show.colors import overlay
from protopfaith.show.encoding import data_uri, png, small_uri
from protopfaith.show.pages import write_page
from protopfaith.show.wording.numbers import percent

SIDE = 132  # pixels of a map
SHOWN = 200  # classes at most
MOST = 12  # images with pictures in a list
THUMBNAIL = 144  # pixels of their longer side


@dataclass(frozen=True)
class Seen:
    """An image, and the same with its map over it."""

    plain: str
    with_map: str
    width: int
    height: int


@dataclass(frozen=True)
class Named:
    """An image that stands out, why, and how it looks if it can be read."""

    name: str
    why: str
    seen: Seen | None


def write_summary(path: Path | str, summary: Summary, bulk: Bulk | None = None) -> Path:
    """Writes the page.

    Args:
        path: of the page
        summary: what it shows
        bulk: the data set, for pictures of the images that are named, as far as they can still be read;
            without it they are only named
    """
    regions = Players.windows(summary.size, summary.window).labels
    seen = {} if bulk is None else _pictures(bulk, summary, regions)
    labels = regions.numpy()
    return write_page(
        path,
        "summary.html",
        side=SIDE,
        images=f"{summary.images:,}",
        lead=_lead(summary),
        classes=[
            {
                "name": one.name,
                "images": f"{one.images:,}",
                "share": percent(one.share),
                "probability": percent(one.probability),
                "unfamiliar": _known(one.unfamiliar),
                "map": _drawn(one.map, labels),
            }
            for one in summary.classes[:SHOWN]
        ],
        more_classes=max(len(summary.classes) - SHOWN, 0),
        outside=[Named(name, percent(share), seen.get(name)) for name, share in summary.outside],
        one_region=[Named(name, percent(share), seen.get(name)) for name, share in summary.one_region],
        groups=[
            {
                "images": f"{one.images:,}",
                "classes": ", ".join(one.classes),
                "examples": [Named(name, "", seen.get(name)) for name in one.examples],
                "map": _drawn(one.map, labels),
            }
            for one in summary.groups
        ],
        drift=[
            (
                one.name,
                *(percent(share) for share in one.share),
                *(_known(value) for value in one.probability),
                "" if math.isnan(one.correlation) else f"{one.correlation:.2f}",
            )
            for one in summary.drift
        ],
        failures=summary.failures[:SHOWN],
        all_failures=f"{len(summary.failures):,}",
    )


def _pictures(bulk: Bulk, summary: Summary, labels: Tensor) -> dict[str, Seen]:
    """Those of the images that are named first, so that the size of the page has a limit."""
    lists = [[name for name, _ in one] for one in (summary.outside, summary.one_region)]
    names = [name for one in (*lists, *(group.examples for group in summary.groups)) for name in one[:MOST]]
    found = thumbnails(bulk, names, THUMBNAIL)
    return {name: _seen(image, summary.maps[name], labels) for name, image in found.items()}


def _seen(image: Image.Image, evidence: np.ndarray, labels: Tensor) -> Seen:
    """A picture with its map in the colors of reports, on a scale of its own."""
    pixels = np.asarray(image) / 255
    small = scaled_labels(labels, pixels.shape[:2]).numpy()
    heat = overlay(evidence[small], max(float(np.abs(evidence).max()), 1e-30))
    alpha = heat[..., 3:]
    with_map = heat[..., :3] * alpha + pixels * (1 - alpha)
    return Seen(small_uri(pixels), small_uri(with_map), image.width, image.height)


def _known(value: float) -> str:
    return "" if math.isnan(value) else percent(value)


def _lead(summary: Summary) -> str:
    """What was explained, and how many images the network does not know."""
    first = summary.classes[0] if summary.classes else None
    if first is None:
        return "No image was explained."
    kinds = "one class" if len(summary.classes) == 1 else f"{len(summary.classes):,} classes"
    said = f"They were explained for {kinds}, most often for {first.name} ({percent(first.share)})."
    strange = sum(one.images * one.unfamiliar for one in summary.classes if not math.isnan(one.unfamiliar))
    if round(strange):
        said += (
            f" {round(strange):,} of the images look like nothing the network knows: what it says of these "
            "should not be relied on."
        )
    return said


def _drawn(values: np.ndarray, labels: np.ndarray) -> dict[str, str]:
    """Mean evidence on white: orange for the class, blue against it, each map on a scale of its own."""
    scale = float(np.abs(values).max())
    heat = overlay(values[labels], max(scale, 1e-30))
    alpha = heat[..., 3:]
    return {"uri": data_uri(png(heat[..., :3] * alpha + (1 - alpha))), "scale": f"{scale:.3g}"}

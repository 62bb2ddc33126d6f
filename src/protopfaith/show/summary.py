"""The page about very many explanations."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from protopfaith.explanation.many.summary import Summary
from protopfaith.shapley import Players
from protopfaith.show.colors import overlay
from protopfaith.show.encoding import data_uri, png
from protopfaith.show.pages import write_page
from protopfaith.show.wording.numbers import percent

SIDE = 132  # pixels of a map
SHOWN = 200  # classes at most


def write_summary(path: Path | str, summary: Summary) -> Path:
    """Writes the page.

    Args:
        path: of the page
        summary: what it shows
    """
    labels = Players.windows(summary.size, summary.window).labels.numpy()
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
        outside=[(name, percent(share)) for name, share in summary.outside],
        one_region=[(name, percent(share)) for name, share in summary.one_region],
        groups=[
            {
                "images": f"{one.images:,}",
                "classes": ", ".join(one.classes),
                "examples": ", ".join(one.examples),
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

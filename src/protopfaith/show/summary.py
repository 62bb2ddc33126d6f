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


def _drawn(values: np.ndarray, labels: np.ndarray) -> str:
    """Mean evidence on white: orange for the class, blue against it, each map on a scale of its own."""
    heat = overlay(values[labels], max(float(np.abs(values).max()), 1e-30))
    alpha = heat[..., 3:]
    return data_uri(png(heat[..., :3] * alpha + (1 - alpha)))

"""How results show themselves in a notebook."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from torch import Tensor

from protopfaith.annotations import check_arguments
from protopfaith.explanation.explanation import Explanation, PrototypeEvidence
from protopfaith.explanation.regions import RegionValues, region_values
from protopfaith.shapley import Attribution
from protopfaith.show.colors import overlay, rgb
from protopfaith.show.encoding import data_uri, png
from protopfaith.show.heat import edges, maps_of, scale_of, shown_evidence
from protopfaith.show.pages import render_fragment
from protopfaith.show.wording.costs import cost, told_error
from protopfaith.show.wording.decision import lead
from protopfaith.show.wording.trust import banners, rough_prototypes
from protopfaith.show.wording.verdicts import verdicts

SIDE = 132  # pixels of a picture
LARGE = 264
EDGES = {1: (0.56, 0.16, 0.02), -1: (0.04, 0.25, 0.47)}  # around what is decided and strong, by its sign


def explanation_html(explanation: Explanation) -> str:
    """The answer, the class map, and the prototypes with their maps."""
    scale = scale_of(maps_of(explanation.evidence))
    mine = explanation.class_map
    return render_fragment(
        "notebook.html",
        side=SIDE,
        large=LARGE,
        title=explanation.title,
        lead=lead(explanation),
        verdicts=verdicts(explanation),
        banners=[*banners(explanation), *rough_prototypes(explanation)],
        picture=data_uri(png(rgb(explanation.pixels))),
        class_map=heat_uri(explanation.pixels, mine, scale_of([mine])),
        with_sources=any(one.source_side is not None for one in explanation.evidence),
        prototypes=[_prototype(explanation, one, scale) for one in explanation.evidence],
        trust=_trust(explanation),
    )


def _prototype(explanation: Explanation, one: PrototypeEvidence, scale: float) -> dict[str, Any]:
    side, source = one.source_side, []
    if side is not None:
        source = [data_uri(png(rgb(side.pixels))), heat_uri(side.pixels, side.regions, scale)]
    return {
        "number": one.prototype,
        "score": "" if math.isnan(one.paper_score) else f"{one.paper_score:+.3f}",
        "distance": f"{one.distance:.3g}",
        "duplicate": one.duplicate_of is not None,
        "map": heat_uri(explanation.pixels, one.test, scale),
        "source": source,
    }


def _trust(explanation: Explanation) -> str:
    error = told_error(explanation.class_map.standard_errors, explanation.precision)
    return (
        "Orange: more similar, or for the class; blue: less, or against; uncolored: not clear which. "
        f"{explanation.settings['players']}, baseline {explanation.baseline}, "
        f"{cost(explanation)} ({explanation.method}), relative error {error}."
    )


class ShownAttribution:
    """An attribution that shows itself in a notebook: one map per output, on a scale of its own.

    Args:
        attribution: what to show
        sign: -1 where the outputs are distances, so that warm colors mean similarity
        names: of the outputs

    >>> import torch
    >>> from protopfaith.shapley import Game, Players, estimate
    >>> game = Game(lambda x: x.flatten(1).sum(1), torch.ones(1, 4, 4), Players.windows((4, 4), 2))
    >>> ShownAttribution(estimate(game, "exact"), names=["sum"])._repr_html_().count("<img")
    1
    """

    def __init__(self, attribution: Attribution, *, sign: int = 1, names: list[str] | None = None):
        check_arguments(ShownAttribution.__init__, locals())
        self.attribution, self.sign = attribution, sign
        self.names = list(() if names is None else names) or [
            f"output {i}" for i in range(len(attribution.values))
        ]

    def _repr_html_(self) -> str:
        a = self.attribution
        error = told_error(a.standard_errors, a.precision)
        return render_fragment(
            "attribution.html",
            side=SIDE,
            maps=[self._map(output, name) for output, name in enumerate(self.names)],
            trust=f"{a.players.description}, baseline {a.baseline}, {cost(a)} ({a.method}), "
            f"relative error {error}. Gray: undecided.",
        )

    def _map(self, output: int, name: str) -> dict[str, str]:
        regions = region_values(self.attribution, output, self.sign).flat
        scale = scale_of([regions])
        heat = overlay(shown_evidence(regions).numpy()[regions.players.labels.numpy()], scale)
        return {
            "image": data_uri(png(heat)),
            "caption": f"{name}: {regions.total:+.4g} in all, ±{scale:.3g} at most",
        }


def heat_uri(pixels: Tensor, regions: RegionValues, scale: float) -> str:
    """A map over its image: decided regions colored, strong ones outlined, all else as it is."""
    flat = regions.flat
    labels = flat.players.labels.numpy()
    heat = overlay(shown_evidence(flat).numpy()[labels], scale)
    alpha = heat[..., 3:]
    shown = rgb(pixels) * (1 - alpha) + heat[..., :3] * alpha
    factor = max(1, LARGE // max(labels.shape))
    shown, labels = (one.repeat(factor, 0).repeat(factor, 1) for one in (shown, labels))
    for edge in edges(flat, scale):
        if edge.strong:
            shown[_border(edge.members[labels])] = EDGES[edge.sign]
    return data_uri(png(shown))


def _border(inside: np.ndarray) -> np.ndarray:
    """The pixels of an area that have a neighbor outside it."""
    padded = np.pad(inside, 1)
    neighbors = padded[:-2, 1:-1] & padded[2:, 1:-1] & padded[1:-1, :-2] & padded[1:-1, 2:]
    return inside & ~neighbors

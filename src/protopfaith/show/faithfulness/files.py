"""What a judgment of explainers leaves in its folder: CSV, figures, settings and a page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import torch

from protopfaith.evaluation.bench.runner import Bench
from protopfaith.evaluation.results import Faithfulness
from protopfaith.network import PatchNetwork
from protopfaith.show.faithfulness.figures import curves_figure, examples_figure, scores_figure
from protopfaith.show.faithfulness.page import write_faithfulness
from protopfaith.writing import atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write(found: Faithfulness, bench: Bench, model: PatchNetwork, title: str) -> None:
    """CSV, figures and the page."""
    common = found.common
    figures = {
        "scores": ("Scores", scores_figure(found)),
        "curves": ("Removal curves", curves_figure(found)),
        "examples": ("Maps of the source images", _examples(common or found, bench, model)),
    }
    frames = {"explainers": found.frame(), "prototypes": found.prototypes_frame()}
    if common is not None:
        shared = f"Removal curves on the {len(common.prototypes)} prototypes in common"
        figures["curves_common"] = (shared, curves_figure(common))
        frames["explainers_common"] = common.frame()
    for name, (_, figure) in figures.items():
        with atomic(found.folder / f"{name}.png") as partial:
            figure.savefig(partial, format="png")
    for name, frame in frames.items():
        with atomic(found.folder / f"{name}.csv") as partial:
            frame.to_csv(partial, index=name != "prototypes")
    with atomic(found.folder / "settings.json") as partial:
        partial.write_text(json.dumps(found.settings, indent=1, default=str), encoding="utf-8")
    write_faithfulness(found.page, found, dict(figures.values()), title)


def _examples(found: Faithfulness, bench: Bench, model: PatchNetwork) -> Figure:
    pixels = {p: subject.pixels for subject in bench.subjects for p in subject.prototypes}
    names = {p: model.class_names[int(model.prototype_classes[p])] for p in found.prototypes}
    maps = {}
    for result in found.results:
        known = bench.maps(result.name)
        maps[result.name] = torch.stack([known[p] for p in found.prototypes])
    captions = [f"prototype {p}\n{name}" for p, name in names.items()]
    return examples_figure([pixels[p] for p in found.prototypes], maps, captions)

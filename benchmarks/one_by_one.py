"""AOPC with one feature removed a step, whatever its size: what unequal features do to the comparison."""

from __future__ import annotations

import torch
from torch import Tensor

from protopfaith.data import ImageData, Preprocessing
from protopfaith.evaluation import Faithfulness
from protopfaith.evaluation.bench.subjects import find_subjects
from protopfaith.evaluation.explainers import EXPLAINERS, Options, selected_distances
from protopfaith.evaluation.metrics.removal import aopc, paper_aopc, removal_curves, removal_ranks
from protopfaith.network import ProtoPNet
from protopfaith.shapley import Players, make_baseline


def one_by_one(
    found: Faithfulness, model: ProtoPNet, data: ImageData, preprocessing: Preprocessing, memory: int | None
) -> str:
    """A sentence: ProtoPNet's map, whose features are pixels, beside ours, whose features are windows.

    The paper removes "one more feature" a step. After T steps that is T pixels of one map and T windows of
    the other. A random order of windows tells what the size of a feature does by itself.
    """
    pixels = _first_pixels(
        model, data, preprocessing, prototypes=found.prototypes, steps=found.steps, memory=memory
    )
    paper = paper_aopc(pixels, found.classes, found.prototypes_per_class)
    told = _compared(found, pixels, found.steps, _pixels(data))
    few = _compared(found, pixels, max(found.steps // 10, 1), _pixels(data))
    return (
        f"With one feature removed a step, as the paper's equation reads: {told} (ProtoPNet's map has "
        f"{paper:.3g} by the paper's normalizer). {few}."
    )


def _compared(found: Faithfulness, pixels: Tensor, steps: int, size: int) -> str:
    """After so many steps: the AOPC of one pixel a step, and how many times as much one window a step has."""
    theirs = float(aopc(pixels[:, : steps + 1]).mean())
    share = min(max(steps / found.n_players, 1 / found.steps), 1.0)  # curves have found.steps steps
    parts = [
        f"T = {steps}: ProtoPNet's map, one pixel a step ({100 * steps / size:.2g}% of the image in the "
        f"end), has an AOPC of {theirs:.3g}"
    ]
    for result in (r for r in found.results if r.name in {"ours", "random"}):
        windows = float(aopc(result.curves["own"], share).mean())
        order = "our order of windows" if result.name == "ours" else "a random order of windows"
        times = f"{windows / theirs:,.0f} times as much"
        parts.append(f"{order}, one window a step ({share:.0%}), has {windows:.3g}, {times}")
    return "; ".join(parts)


def _first_pixels(
    model: ProtoPNet,
    data: ImageData,
    preprocessing: Preprocessing,
    *,
    prototypes: tuple[int, ...],
    steps: int,
    memory: int | None,
) -> Tensor:
    """Curves of ProtoPNet's map, one pixel a step, (n, T + 1)."""
    images, ranks, order = [], [], []
    for subject in find_subjects(model, data, prototypes, preprocessing):
        options = Options(Players.windows(subject.image.shape[-2:], 16))
        maps = EXPLAINERS["protopnet"](model, subject.image, subject.prototypes, options).maps
        for prototype, one in zip(subject.prototypes, maps, strict=True):
            generator = torch.Generator().manual_seed(prototype)
            images.append(subject.image)
            ranks.append(_stretched(removal_ranks(one, None, generator), steps))
            order.append(prototype)
    batch = torch.stack(images)
    baselines = torch.stack([make_baseline("zero", image)[0] for image in images])
    function, outputs = selected_distances(model, order), torch.arange(len(order))
    return removal_curves(function, batch, torch.stack(ranks), outputs, baselines, steps=steps, memory=memory)


def _stretched(ranks: Tensor, steps: int) -> Tensor:
    """Curves remove equal shares of the image at every step: with these ranks a share holds one pixel."""
    return (ranks.double() * ranks.numel() / steps).ceil().long()


def _pixels(data: ImageData) -> int:
    return data.train.image(0)[0].numel()

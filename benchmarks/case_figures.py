"""The paper's figure for some test images that the network gets right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from protopfaith.data import ImageData, ImageSet
from protopfaith.explanation import Explainer, explain
from protopfaith.show.figures import figure, write
from protopfaith.training import Run

LARGEST = 1_500_000  # bytes of a picture
RESOLUTIONS = (150, 125, 100, 80, 65)  # dots per inch, until it is small enough


def case_figures(
    run: Run, data: ImageData, folder: Path, count: int, *, device: str, seed: int = 0, **options: Any
) -> list[Path]:
    """`count` figures as PNG; `options` are those of `protopfaith.explanation.explain`."""
    explainer = Explainer(run, images=data, device=device)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for index in correct_images(explainer, data.test, count, seed):
        name = data.test.paths[index]
        found = explain(explainer, data.test.image(index), name=Path(name).name, seed=seed, **options)
        drawing = figure(found, columns=5 if len(found.evidence) == 5 else 4)
        path = folder / f"case-{len(written) + 1}-{Path(name).stem}.png"
        for dpi in RESOLUTIONS:
            write(drawing, path, dpi)
            if path.stat().st_size <= LARGEST:
                break
        written.append(path)
    return written


def correct_images(explainer: Explainer, images: ImageSet, count: int, seed: int) -> list[int]:
    """Images that are classified right, drawn at random, of as many classes as there are."""
    chosen: list[int] = []
    seen: dict[int, int] = {}
    right = list(_correct(explainer, images, seed, most=max(32, 8 * count)))
    while right and len(chosen) < count:  # always one of the class that was shown least
        best = min(right, key=lambda index: seen.get(int(images.labels[index]), 0))
        right.remove(best)
        chosen.append(best)
        label = int(images.labels[best])
        seen[label] = seen.get(label, 0) + 1
    return chosen


@torch.no_grad()
def _correct(explainer: Explainer, images: ImageSet, seed: int, most: int) -> Iterator[int]:
    assert explainer.preprocessing is not None
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))[:most].tolist()
    for start in range(0, len(order), 32):
        some = order[start : start + 32]
        pixels = torch.stack([images.image(index) for index in some]).to(explainer.device)
        predicted = explainer.model(explainer.preprocessing.normalize(pixels)).argmax(1).tolist()
        yield from (i for i, label in zip(some, predicted, strict=True) if label == int(images.labels[i]))

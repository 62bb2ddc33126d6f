"""Images that a network has never seen the like of, and birds without some of their species.

Kinds are in two lists: the rule for what is unfamiliar was chosen by looking at the first, and is judged on
the second, which took no part in that choice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from protopfaith.data import ImageData, ImageSet, Preprocessing
from protopfaith.data.birds.drawing import choose_plumage, draw_variants
from protopfaith.data.birds.species import SHARED
from protopfaith.data.imagedata import split_pool

COUNT = 100
Kind = Callable[[np.random.Generator, int], np.ndarray]
"""One image of that kind, `side` x `side` x 3, values from 0 to 255."""


def uniform_noise(rng: np.random.Generator, side: int) -> np.ndarray:
    return rng.uniform(0, 256, (side, side, 3))


def gaussian_noise(rng: np.random.Generator, side: int) -> np.ndarray:
    return rng.normal(rng.uniform(80, 180), rng.uniform(10, 60), (side, side, 3))


def smooth_noise(rng: np.random.Generator, side: int) -> np.ndarray:
    """Clouds of several sizes."""
    total = np.zeros((side, side, 3))
    for cells in (3, 6, 12, 24):
        grid = Image.fromarray(rng.integers(0, 256, (cells, cells, 3), dtype=np.uint8))
        total += np.asarray(grid.resize((side, side), Image.Resampling.BICUBIC), float) * 2 / cells
    return (total - total.min()) / np.ptp(total) * 255


def gray_noise(rng: np.random.Generator, side: int) -> np.ndarray:
    return np.repeat(rng.uniform(0, 256, (side, side, 1)), 3, axis=2)


def blank(rng: np.random.Generator, side: int) -> np.ndarray:
    return np.broadcast_to(rng.uniform(0, 256, 3), (side, side, 3))


def gradient(rng: np.random.Generator, side: int) -> np.ndarray:
    share = np.linspace(0, 1, side)[:, None, None]
    image = (1 - share) * rng.uniform(0, 256, 3) + share * rng.uniform(0, 256, 3)
    image = np.broadcast_to(image, (side, side, 3))
    return image if rng.integers(2) else image.transpose(1, 0, 2)


def checkerboard(rng: np.random.Generator, side: int) -> np.ndarray:
    cell = int(rng.integers(3, 25))
    odd = np.add.outer(np.arange(side) // cell, np.arange(side) // cell) % 2
    return np.where(odd[..., None], rng.uniform(0, 256, 3), rng.uniform(0, 256, 3))


def blocks(rng: np.random.Generator, side: int) -> np.ndarray:
    """Colored squares, twelve pixels each."""
    squares = -(-side // 12)
    return rng.uniform(0, 256, (squares, squares, 3)).repeat(12, 0).repeat(12, 1)[:side, :side]


def bird_of_no_species(rng: np.random.Generator, side: int) -> np.ndarray:
    """All parts are those that species share: nothing tells which one it is."""
    variants = {part: names[rng.integers(len(names))] for part, names in SHARED.items()}
    return np.asarray(draw_variants(variants, choose_plumage(rng), rng, side).image)


CHOSEN_ON: tuple[Kind, ...] = (uniform_noise, smooth_noise, blank, checkerboard)
JUDGED_ON: tuple[Kind, ...] = (gaussian_noise, gray_noise, gradient, blocks)


def drawn(kind: Kind, preprocessing: Preprocessing, count: int = COUNT, seed: int = 0) -> Tensor:
    """(count, C, H, W), uint8, as the network takes its images."""
    side = max(preprocessing.size)
    images = [kind(np.random.default_rng([seed, index]), side) for index in range(count)]
    pixels = [Image.fromarray(image.clip(0, 255).astype(np.uint8)) for image in images]
    return torch.stack([preprocessing.uint8(image) for image in pixels])


def photographs(
    folder: Path,
    preprocessing: Preprocessing,
    start: int,
    count: int = COUNT,
    known: Collection[str] = (),
) -> Tensor:
    """Of a folder of images and all folders in it, every so many, from `start` of each step on; without those
    in folders of a class that is `known` to the network."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in (".jpg", ".png"))
    paths = [path for path in paths if path.parent.name not in known]
    step = max(1, len(paths) // count)
    chosen = paths[min(start, step - 1) :: step][:count]
    pixels = [preprocessing.uint8(Image.open(path).convert("RGB")) for path in chosen]
    return torch.stack(pixels) if pixels else torch.zeros(0, preprocessing.channels, *preprocessing.size)


def birds_without(data: ImageData, species: Sequence[int]) -> ImageData:
    """The same images without those of some species, which the network then never hears of."""
    kept = [label for label in range(len(data.classes)) if label not in species]
    names = [data.classes[label] for label in kept]
    records, rows, split_of = [], [], []
    for split, images in data.sets().items():
        for record, row in zip(images.records, images.rows.tolist(), strict=True):
            if record.label in kept:
                records.append(replace(record, label=kept.index(record.label)))
                rows.append(row)
                split_of.append(split)
    pool = ImageSet(data.train.pixels, records, names, rows=rows)
    return split_pool(pool, split_of, data.preprocessing)

"""The embedded data set: drawn when it is needed, the same on every machine for the same seed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import PIL

from protopfaith.annotations import check_arguments
from protopfaith.arguments import seed_number, whole_number
from protopfaith.data.birds.drawing import draw_bird
from protopfaith.data.birds.species import CLASSES, PARTS
from protopfaith.data.cache import build_once, cache_folder
from protopfaith.data.imagedata import ImageData, split_pool
from protopfaith.data.imageset import ImageSet, Record
from protopfaith.data.preprocessing import Preprocessing
from protopfaith.data.registry import DATASETS, Fold, Size, as_size, without_folder
from protopfaith.data.splits import with_fold
from protopfaith.errors import ProtoPFaithError

SPLITS = ("train", "validation", "test")
MOST_BIRDS = 1_000_000
MOST_PIXELS = 1_000_000_000
Draw = Callable[[Mapping[str, int], int, int], tuple[np.ndarray, ...]]  # of birds per split, a seed, a size


def draw_birds(counts: Mapping[str, int], *, seed: int = 0, size: int = 96) -> ImageSet:
    """As many birds for each split, the species in turn.

    Every image has its own generator: it does not depend on how many others are drawn, and splits share none.
    """
    check_arguments(draw_birds, locals())
    check_drawing(counts, None, size, fewest=0)
    return _image_set(counts, *_draw(counts, seed_number(seed), size))


def _draw(counts: Mapping[str, int], seed: int, size: int) -> tuple[np.ndarray, ...]:
    """Pixels and part maps."""
    ids = bird_ids(counts)
    pixels = np.empty((len(ids), 3, size, size), np.uint8)
    part_maps = np.empty((len(ids), size, size), np.uint8)
    for row, (split, index) in enumerate(ids):
        rng = np.random.default_rng([seed, SPLITS.index(split), index])
        bird = draw_bird(CLASSES[index % len(CLASSES)], rng, size)
        pixels[row] = np.asarray(bird.image).transpose(2, 0, 1)
        part_maps[row] = bird.part_map
    return pixels, part_maps


def drawn_once(
    name: str, counts: Mapping[str, int], seed: int, size: int, draw: Draw, **more: tuple[int, ...]
) -> tuple[np.ndarray, ...]:
    """What `draw` gives for these arguments, drawn once for each version of the drawing and then mapped from
    the cache folder.

    Args:
        name: of the data set
        counts: birds in each split
        seed: of the drawing
        size: the side of an image
        draw: gives pixels and part maps, and then what `more` names
        more: the shape of one image's entry in each further array, by the array's name
    """
    folder = cache_folder() / "images" / f"{name}-{size}x{size}-{drawing_key(counts, seed)}"
    shapes = {"pixels": (3, size, size), "part_maps": (size, size), **more}
    drawn: list[tuple[np.ndarray, ...]] = []

    def build(partial_folder: Path) -> None:
        drawn.append(draw(counts, seed, size))
        for array_name, array in zip(shapes, drawn[0], strict=True):
            np.save(partial_folder / f"{array_name}.npy", array)

    def read(built_folder: Path) -> tuple[np.ndarray, ...]:
        found = tuple(np.load(built_folder / f"{array_name}.npy", mmap_mode="r") for array_name in shapes)
        count = len(bird_ids(counts))
        if [array.shape for array in found] != [(count, *shape) for shape in shapes.values()]:
            raise ValueError("another shape")
        return found

    try:
        return build_once(folder, build, read)
    except ProtoPFaithError:
        # Nowhere to keep them (read-only home, full disk): birds can always be drawn again.
        return drawn[0] if drawn else draw(counts, seed, size)


def bird_ids(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Split and number of every image, in order."""
    return [(split, index) for split in SPLITS for index in range(counts[split])]


def _image_set(counts: Mapping[str, int], pixels: np.ndarray, part_maps: np.ndarray) -> ImageSet:
    records = [
        Record(f"{split}/{index:04d}", index % len(CLASSES), hashlib.sha256(image.tobytes()).hexdigest())
        for (split, index), image in zip(bird_ids(counts), pixels, strict=True)
    ]
    return ImageSet(pixels, records, CLASSES, part_maps=part_maps, part_names=PARTS)


def drawing_key(counts: Mapping[str, int], seed: int) -> str:
    """Changes with the drawing code and its libraries, so that a cache never shows yesterday's birds."""
    code = "".join(path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py")))
    versions = f"{np.__version__} {PIL.__version__}"
    return hashlib.sha256(f"{code}{versions}{sorted(counts.items())}{seed}".encode()).hexdigest()[:16]


def check_drawing(counts: Mapping[str, int], root: Path | None, size: Size, *, fewest: int) -> int:
    """The side of the squares that are drawn; raises if so many cannot be, or need a folder."""
    missing = [split for split in SPLITS if split not in counts]
    if missing:
        raise ProtoPFaithError(f"There is no number of {missing[0]} birds; give one for each split.")
    height, width = as_size(size, 96)
    if root is not None:
        raise ProtoPFaithError(f"The birds are drawn, not read: leave out the data root ({root}).")
    if height != width:
        raise ProtoPFaithError(
            f"Birds are drawn on squares, not {height}x{width}; give one number as the size."
        )
    for name, count in counts.items():
        whole_number(count, f"The number of {name} birds", least=0, most=MOST_BIRDS)
    count = sum(counts.values())
    if count * height * width > MOST_PIXELS:
        raise ProtoPFaithError(
            f"{count:,} birds of {height}x{width} pixels are too many to be drawn; ask for fewer, or smaller "
            "ones."
        )
    if min(counts["train"], counts["test"]) < fewest:
        raise ProtoPFaithError(
            f"The birds need at least {fewest} training and test images; {counts['train']:,} and "
            f"{counts['test']:,} were asked for."
        )
    return height


@DATASETS.register("birds")
@without_folder
def load_birds(
    *,
    root: Path | None,
    size: Size,
    seed: int,
    fold: Fold,
    skip_unreadable: bool,
    train: int = 1000,
    validation: int = 200,
    test: int = 200,
) -> ImageData:
    """Embedded, no download: drawn birds of eight invented species, 96x96, with a mask for each part."""
    check_arguments(load_birds, locals())
    seed = seed_number(seed)
    counts = {"train": train, "validation": validation, "test": test}
    side = check_drawing(counts, root, size, fewest=len(CLASSES))
    birds = _image_set(counts, *drawn_once("birds", counts, seed, side, _draw))
    splits = [path.split("/")[0] for path in birds.paths]
    groups = birds.paths
    split_of = with_fold(splits, birds.paths, birds.labels.tolist(), groups, fold=fold, seed=seed)
    return split_pool(birds, split_of, Preprocessing((side, side), 3, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25)))

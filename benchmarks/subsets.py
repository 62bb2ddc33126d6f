"""Smaller data sets as folders of links, to try recipes on: every tenth class of CUB, a tenth of RSNA.

python benchmarks/subsets.py --cub data/CUB_200_2011 --rsna rsna_224 --out subsets
protopfaith train folder --root subsets/cub20 ...

With --small a few hundred images each, as people have them, for `benchmarks/carry_over.py`: 10 classes of 30
birds, 4 of 15, 20 of 5, 100 of 4; 300 radiographs, and 380 or 200 healthy with 20 others; 300 digits; 90
patches of brick, grass and gravel; 30 of each species of the embedded birds.

With --tested small trainings whose test sets are large enough to count on: the same 10 classes of birds and
10 others with all of their training and test images (these also with 15 of each class to train on), 600 and
300 radiographs to train and 1,000 to test on, and 30 of each species of the embedded birds with 25 to test
on.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
from pathlib import Path


def link(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        place.symlink_to(source.resolve())


def cub(root: Path, out: Path, step: int, first: int = 0) -> None:
    """Every `step`-th class, with the official split into training and test images."""
    tables = {
        name: dict(line.split(" ", 1) for line in (root / f"{name}.txt").read_text().splitlines())
        for name in ("images", "train_test_split")
    }
    for image, path in tables["images"].items():
        if (int(path.partition(".")[0]) - 1) % step == first:
            split = "train" if tables["train_test_split"][image] == "1" else "test"
            link(root / "images" / path, out / split / path)


def rsna(root: Path, out: Path, part: int) -> None:
    """One image in `part`, decided by the hash of its name, in a folder for each class."""
    with (root / "labels.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if int(hashlib.sha256(row["file"].encode()).hexdigest(), 16) % part == 0:
                link(root / row["file"], out / f"rsna{part}" / row["label"] / Path(row["file"]).name)


def fewer(root: Path, out: Path, images: int) -> None:
    """The same with so many training images of each class."""
    for split, most in (("train", images), ("test", None)):
        for folder in sorted((root / split).iterdir()):
            for path in sorted(folder.iterdir())[:most]:
                link(path, out / split / folder.name / path.name)


def few_birds(root: Path, out: Path, classes: slice, images: int) -> None:
    """Some images of some classes, in a folder for each class."""
    for folder in sorted((root / "images").iterdir())[classes]:
        for path in sorted(folder.glob("*.jpg"))[:images]:
            link(path, out / folder.name / path.name)


def few_radiographs(root: Path, out: Path, counts: dict[str, int], first: int = 0) -> None:
    """So many of each class, in the order of the hashes of their names."""
    with (root / "labels.csv").open(newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: hashlib.sha256(row["file"].encode()).hexdigest())
    for label, count in counts.items():
        for row in [row for row in rows if row["label"] == label][first : first + count]:
            link(root / row["file"], out / label / Path(row["file"]).name)


def few_digits(out: Path, images: int) -> None:
    """So many of each of scikit-learn's digits, which have 8 x 8 pixels, at 64 x 64."""
    import numpy as np
    from PIL import Image
    from sklearn.datasets import load_digits

    digits = load_digits()
    for digit in range(10):
        for number, picture in enumerate(digits.images[digits.target == digit][:images], start=1):
            place = out / str(digit) / f"{number:03}.png"
            place.parent.mkdir(parents=True, exist_ok=True)
            gray = Image.fromarray((picture * 15.9).astype(np.uint8))
            gray.resize((64, 64), Image.Resampling.BICUBIC).save(place)


def few_textures(out: Path) -> None:
    """Patches of three of scikit-image's pictures that do not overlap."""
    from PIL import Image
    from skimage import data

    for name in ("brick", "grass", "gravel"):
        picture = getattr(data, name)()
        for number, (row, column) in enumerate((84 * i, 100 * j) for i in range(6) for j in range(5)):
            place = out / name / f"{number:03}.png"
            place.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture[row : row + 84, column : column + 84]).save(place)


def few_drawn(out: Path, images: int, split: str = "train") -> None:
    """So many of each species of the embedded birds, at 112 x 112."""
    from torchvision.transforms.functional import to_pil_image

    from protopfaith.data import load_data

    data = load_data("birds", size=(112, 112))
    chosen = data.sets()[split]
    counts = dict.fromkeys(data.classes, 0)
    for index, label in enumerate(chosen.labels.tolist()):
        name = data.classes[label]
        if counts[name] < images:
            counts[name] += 1
            place = out / name / f"{counts[name]:03}.png"
            place.parent.mkdir(parents=True, exist_ok=True)
            to_pil_image(chosen.image(index)).save(place)


def small(cub_root: Path | None, rsna_root: Path | None, out: Path) -> None:
    few_digits(out / "digits", 30)
    few_textures(out / "textures")
    few_drawn(out / "drawn", 30)
    if cub_root:
        few_birds(cub_root, out / "cub10", slice(None, None, 20), 30)
        few_birds(cub_root, out / "cub4x15", slice(9, None, 50), 15)
        few_birds(cub_root, out / "cub20x5", slice(3, None, 10), 5)
        few_birds(cub_root, out / "cub100x4", slice(1, None, 2), 4)
    if rsna_root:
        few_radiographs(rsna_root, out / "rsna300", {"normal": 150, "lung_opacity": 150})
        few_radiographs(rsna_root, out / "rsna_rare", {"normal": 380, "lung_opacity": 20}, first=400)
        few_radiographs(rsna_root, out / "rsna_20of220", {"normal": 200, "lung_opacity": 20}, first=2_000)


def large(cub_root: Path | None, rsna_root: Path | None, out: Path) -> None:
    if cub_root:
        cub(cub_root, out / "cub20", step=10)
        cub(cub_root, out / "cub100", step=2)
    if rsna_root:
        rsna(rsna_root, out, part=10)


def tested(cub_root: Path | None, rsna_root: Path | None, out: Path) -> None:
    few_drawn(out / "drawn" / "train", 30)
    few_drawn(out / "drawn" / "test", 25, "test")
    if cub_root:
        cub(cub_root, out / "cub10", step=20)
        cub(cub_root, out / "cub10_others", step=20, first=7)
        fewer(out / "cub10_others", out / "cub10x15", 15)
    if rsna_root:
        for name, images, first in (("rsna600", 300, 0), ("rsna300", 150, 1_000)):
            few_radiographs(rsna_root, out / name / "train", _each(images), first)
            few_radiographs(rsna_root, out / name / "test", _each(500), first + images)


def _each(images: int) -> dict[str, int]:
    return {"normal": images, "lung_opacity": images}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cub", type=Path, help="the folder CUB_200_2011")
    parser.add_argument("--rsna", type=Path, help="a folder with labels.csv (file, label)")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--small", action="store_true", help="a few hundred images each")
    parser.add_argument("--tested", action="store_true", help="small trainings, large test sets")
    arguments = parser.parse_args()
    made = small if arguments.small else tested if arguments.tested else large
    made(arguments.cub, arguments.rsna, arguments.out)
    for folder in sorted(arguments.out.iterdir()):
        print(f"{folder}: {sum(path.is_file() for path in folder.rglob('*'))} images")


if __name__ == "__main__":
    main()

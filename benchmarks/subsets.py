"""Smaller data sets as folders of links, to try recipes on: every tenth class of CUB, a tenth of RSNA.

python benchmarks/subsets.py --cub data/CUB_200_2011 --rsna rsna_224 --out subsets
protopfaith train folder --root subsets/cub20 ...
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


def cub(root: Path, out: Path, step: int) -> None:
    """Every `step`-th class, with the official split into training and test images."""
    tables = {
        name: dict(line.split(" ", 1) for line in (root / f"{name}.txt").read_text().splitlines())
        for name in ("images", "train_test_split")
    }
    for image, path in tables["images"].items():
        if (int(path.partition(".")[0]) - 1) % step == 0:
            split = "train" if tables["train_test_split"][image] == "1" else "test"
            link(root / "images" / path, out / f"cub{200 // step}" / split / path)


def rsna(root: Path, out: Path, part: int) -> None:
    """One image in `part`, decided by the hash of its name, in a folder for each class."""
    with (root / "labels.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if int(hashlib.sha256(row["file"].encode()).hexdigest(), 16) % part == 0:
                link(root / row["file"], out / f"rsna{part}" / row["label"] / Path(row["file"]).name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cub", type=Path, help="the folder CUB_200_2011")
    parser.add_argument("--rsna", type=Path, help="a folder with labels.csv (file, label)")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    if arguments.cub:
        cub(arguments.cub, arguments.out, step=10)
        cub(arguments.cub, arguments.out, step=2)
    if arguments.rsna:
        rsna(arguments.rsna, arguments.out, part=10)
    for folder in sorted(arguments.out.iterdir()):
        print(f"{folder}: {sum(path.is_file() for path in folder.rglob('*'))} images")


if __name__ == "__main__":
    main()

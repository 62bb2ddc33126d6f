"""Checking a data set file by file and building its cache, before the first training."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from protopfaith.annotations import check_arguments, check_fields
from protopfaith.data.imagedata import ImageData
from protopfaith.data.registry import Size, load_data


@dataclass(frozen=True)
class Preparation:
    """What was found; `str()` of it is the report for people. (`data.notes` were logged already.)

    Args:
        name: of the data set
        data: its images
        seconds: that it took

    >>> prepare("birds", size=16, train=8, validation=8, test=8).data.train
    ImageSet(8 images of 8 classes, 3x16x16)
    """

    name: str
    data: ImageData
    seconds: float

    def __post_init__(self) -> None:
        check_fields(self)

    def __str__(self) -> str:
        sets = self.data.sets()
        height, width = self.data.preprocessing.size
        sizes = ", ".join(f"{len(images):,} {name}" for name, images in sets.items())
        skipped = len(self.data.unreadable)
        kind = "with {} findings" if self.data.outcome == "several" else "of {} classes"
        per_class = Counter(
            label for images in sets.values() for index in range(len(images)) for label in images.shows(index)
        )
        lines = [
            f"{self.name}: {sum(map(len, sets.values())):,} images {kind.format(len(self.data.classes))} "
            f"({min(per_class.values())} to {max(per_class.values())} each), "
            + (f"{skipped:,} more are unreadable and skipped" if skipped else "all readable"),
            f"at {height}x{width}: {sizes}",
            f"fingerprint {self.data.fingerprint[:16]}, ready in {self.seconds:.1f} s",
        ]
        return "\n".join(lines)


def prepare(name: str, root: Path | str | None = None, size: Size = None, **options: Any) -> Preparation:
    """Checks that every file of the data set is there and readable and builds the cache that training maps
    into memory. What is missing is one `ProtoPFaithError` that says where to get it.

    Args:
        name: one of `DATASETS`
        root: where the data lies
        size: the training size
        options: further ones of `load_data`

    >>> print(prepare("birds", size=16, train=8, validation=8, test=8))  # doctest: +ELLIPSIS
    birds: 24 images of 8 classes (3 to 3 each), all readable
    at 16x16: 8 train, 8 validation, 8 test
    fingerprint ..., ready in ... s
    """
    check_arguments(prepare, locals())
    start = perf_counter()
    data = load_data(name, root=root, size=size, **options)
    return Preparation(name, data, perf_counter() - start)

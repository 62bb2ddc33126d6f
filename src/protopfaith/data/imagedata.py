"""The three sets of images that a run needs: to learn from, to choose by, and held out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from protopfaith.annotations import check_fields
from protopfaith.data.imageset import ImageSet, Record
from protopfaith.data.listing import Outcome
from protopfaith.data.preprocessing import Preprocessing
from protopfaith.errors import ProtoPFaithError


@dataclass(frozen=True)
class ImageData:
    """Training, validation and test images that share classes and preprocessing.

    Args:
        train: images to learn from
        validation: to choose by; empty when everything is trained on (`fold="none"`)
        test: held out
        classes: names
        fingerprint: changes with every image's path, content and class
        preprocessing: how images are prepared for the network
        notes: sentences about what was decided while loading (skipped images, how splits were made), for
            people
        unreadable: paths of files that were skipped

    >>> from protopfaith.data import load_data
    >>> data = load_data("birds", size=16, train=8, validation=8, test=8)
    >>> {name: len(images) for name, images in data.sets().items()}
    {'train': 8, 'validation': 8, 'test': 8}
    """

    train: ImageSet
    validation: ImageSet
    test: ImageSet
    classes: tuple[str, ...]
    fingerprint: str
    preprocessing: Preprocessing
    notes: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(images):,} {name}" for name, images in self.sets().items())
        kind = "findings" if self.outcome == "several" else "classes"
        return f"ImageData({sizes}, {len(self.classes)} {kind}, fingerprint {self.fingerprint[:8]})"

    @property
    def outcome(self) -> Outcome:
        """Whether images show "one" class each, or "several" findings."""
        return self.train.outcome

    def sets(self) -> dict[str, ImageSet]:
        """The three sets by name."""
        return {"train": self.train, "validation": self.validation, "test": self.test}

    def splits(self) -> dict[str, list[str]]:
        """The paths in each split, to be kept with a run."""
        return {name: list(images.paths) for name, images in self.sets().items()}


def split_pool(
    pool: ImageSet,
    split_of: Sequence[str],
    preprocessing: Preprocessing,
    *,
    notes: tuple[str, ...] = (),
    unreadable: tuple[str, ...] = (),
) -> ImageData:
    """The three sets of a data set, from all of its images; raises if two splits share an image's content.

    Args:
        pool: all images
        split_of: "train", "validation" or "test" for each image, or "" to leave it out
        preprocessing: how they are prepared for the network
        notes: sentences about what was decided while loading
        unreadable: the paths of files that were skipped
    """
    sets = pool.split(split_of)
    check_no_overlap(sets)
    used = (record for images in sets.values() for record in images.records)
    return ImageData(
        sets["train"],
        sets["validation"],
        sets["test"],
        classes=pool.classes,
        fingerprint=fingerprint(used, pool.classes),
        preprocessing=preprocessing,
        notes=notes,
        unreadable=unreadable,
    )


def fingerprint(records: Iterable[Record], classes: Sequence[str]) -> str:
    """SHA-256 over every image's path, content and class, whatever their order."""
    lines = sorted(f"{record.path}\0{record.sha256}\0{_shows(record, classes)}" for record in records)
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


def _shows(record: Record, classes: Sequence[str]) -> str:
    """What an image shows, as a text."""
    if not record.findings:
        return classes[record.label]
    return ", ".join(f"{name}={value}" for name, value in zip(classes, record.findings, strict=True))


def check_no_overlap(sets: Mapping[str, ImageSet]) -> None:
    """Raises if an image's content is in two splits."""
    seen: dict[str, tuple[str, str]] = {}
    for name, images in sets.items():
        for record in images.records:
            other, path = seen.setdefault(record.sha256, (name, record.path))
            if other != name:
                raise ProtoPFaithError(
                    f"The same image is in two splits: {path} ({other}) and {record.path} ({name}); "
                    "remove one of them, or the test would be on training images."
                )

"""Images with labels, in memory or mapped from disk."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from protopfaith.annotations import check_arguments, check_fields
from protopfaith.arguments import instance, whole_number
from protopfaith.data.listing import Box, Outcome
from protopfaith.errors import ProtoPFaithError


@dataclass(frozen=True)
class Record:
    """What is known of one image besides its pixels; coordinates are (x, y) pixels at training size.

    Args:
        path: relative to the data's root, with forward slashes
        label: index of its class; -1 where `findings` say what it shows
        sha256: of the file (of the pixels, for embedded data)
        boxes: around the object: left, top, right, bottom
        points: where parts are, by their names
        group: which images belong together, as those of one patient; empty where it stands alone
        about: what else is known, such as sex and age
        findings: of images that may show several things at once, one number for each: 1 there, 0 not there,
            -1 not known

    >>> Record("cats/7.png", 0, "e3b0c442", boxes=((10.0, 5.0, 60.0, 50.0),)).boxes
    ((10.0, 5.0, 60.0, 50.0),)
    >>> Record("lungs/7.png", -1, "e3b0c442", findings=(1, 0, -1)).findings
    (1, 0, -1)
    """

    path: str
    label: int
    sha256: str
    boxes: tuple[Box, ...] = ()
    points: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    group: str = ""
    about: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class _Mapped:
    """An array file that is mapped into memory where it is needed."""

    path: str


def _check_pixels(pixels: np.ndarray, count: int) -> None:
    """Raises if there are no pixels for so many images."""
    instance(pixels, np.ndarray, "Pixels", "an array of N x C x H x W")
    if pixels.ndim != 4 or pixels.dtype != np.uint8 or len(pixels) < count:
        raise ProtoPFaithError(
            f"Pixels are uint8, N x C x H x W, for {count} images, not {pixels.dtype} of shape "
            f"{pixels.shape}; convert them."
        )


class ImageSet(Dataset[tuple[torch.Tensor, int | torch.Tensor]]):
    """`records[i]` describes the image `pixels[rows[i]]` (uint8, C x H x W, training size).

    `pixels` may be mapped from a file, and several sets may share it. `part_maps[rows[i]]` (H x W, if
    any) holds 0 for the background and k for the k-th of `part_names`. `labels` are the classes of the
    images, (N,), or what is known of their findings, (N, C): 1, 0, or not-a-number where it is missing.

    Args:
        pixels: all images, uint8, N x C x H x W; may be mapped from a file
        records: what is known of each image of this set
        classes: names, of classes or of findings
        rows: where the images are in `pixels`; by default the first ones
        root: the folder that paths are relative to
        part_maps: N x H x W: 0 for the background, k for the k-th part
        part_names: of the parts
        outcome: "one" class per image, or "several" findings

    >>> pixels = np.zeros((2, 3, 8, 8), np.uint8)
    >>> images = ImageSet(pixels, [Record("a.png", 0, "1"), Record("b.png", 1, "2")], ["cat", "dog"])
    >>> images
    ImageSet(2 images of 2 classes, 3x8x8)
    >>> images.subset([1]).paths
    ['b.png']
    """

    def __init__(
        self,
        pixels: np.ndarray,
        records: Sequence[Record],
        classes: Sequence[str],
        *,
        rows: Sequence[int] | None = None,
        root: Path | str | None = None,
        part_maps: np.ndarray | None = None,
        part_names: Sequence[str] = (),
        outcome: Outcome = "one",
    ):
        check_arguments(ImageSet.__init__, locals())
        _check_pixels(pixels, len(records) if rows is None else max(rows, default=-1) + 1)
        self.pixels = pixels
        self.records = tuple(records)
        self.classes = tuple(classes)
        self.rows = np.arange(len(self.records)) if rows is None else np.asarray(rows, dtype=np.int64)
        self.root = None if root is None else Path(root)
        self.part_maps = part_maps
        self.part_names = tuple(part_names)
        self.paths = [record.path for record in self.records]
        self.outcome = outcome
        self.labels = (
            finding_labels(self.records, len(self.classes))
            if outcome == "several"
            else class_labels(self.records, len(self.classes))
        )

    def __getstate__(self) -> dict[str, Any]:
        # Loading processes get the name of a mapped file, not a copy of its content.
        return {k: _Mapped(str(v.filename)) if isinstance(v, np.memmap) else v for k, v in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(
            {k: np.load(v.path, mmap_mode="r") if isinstance(v, _Mapped) else v for k, v in state.items()}
        )

    def __repr__(self) -> str:
        channels, height, width = self.pixels.shape[-3:]
        count, size = len(self.classes), f"{channels}x{height}x{width}"
        if self.outcome == "several":
            return f"ImageSet({len(self):,} images with {count} finding{'s' * (count > 1)}, {size})"
        return f"ImageSet({len(self):,} images of {count} classes, {size})"

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int | torch.Tensor]:
        label = self.labels[index] if self.outcome == "several" else self.records[index].label
        return self.image(index), label

    def image(self, index: int) -> torch.Tensor:
        """uint8, C x H x W.

        Args:
            index: which image of the set
        """
        return torch.from_numpy(np.array(self.pixels[self.rows[self._place(index)]]))

    def _place(self, index: int) -> int:
        return whole_number(index, "The number of an image", least=-len(self), most=len(self) - 1)

    def uint8(self, indices: Sequence[int] | None = None) -> torch.Tensor:
        """Images as they are stored: uint8, N x C x H x W.

        Args:
            indices: which images of the set; None: all
        """
        rows = self.rows if indices is None else self.rows[[self._place(index) for index in indices]]
        return torch.from_numpy(np.ascontiguousarray(self.pixels[rows]))

    def sha256(self, index: int) -> str:
        """The fingerprint of the image file (of the pixels, for embedded data).

        Args:
            index: which image of the set
        """
        return self.records[self._place(index)].sha256

    def shows(self, index: int) -> tuple[int, ...]:
        """What is in the image: its class, or the findings that are known to be there.

        Args:
            index: which image of the set
        """
        record = self.records[self._place(index)]
        if self.outcome == "several":
            return tuple(place for place, known in enumerate(record.findings) if known == 1)
        return (record.label,)

    def boxes(self, index: int) -> torch.Tensor:
        """n x 4: left, top, right, bottom in pixels at training size.

        Args:
            index: which image of the set
        """
        return torch.tensor(self.records[self._place(index)].boxes, dtype=torch.float32).reshape(-1, 4)

    def box(self, index: int) -> Box | None:
        """The smallest box around all boxes of the image, or None.

        Args:
            index: which image of the set
        """
        boxes = self.records[self._place(index)].boxes
        if not boxes:
            return None
        left, top, right, bottom = np.array(boxes).T
        return float(left.min()), float(top.min()), float(right.max()), float(bottom.max())

    def points(self, index: int) -> dict[str, tuple[float, float]]:
        """Visible part locations, (x, y) in pixels at training size.

        Args:
            index: which image of the set
        """
        return dict(self.records[self._place(index)].points)

    def mask(self, index: int) -> dict[str, torch.Tensor]:
        """The visible pixels of each part, bool H x W; hidden parts are left out.

        Args:
            index: which image of the set
        """
        if self.part_maps is None:
            return {}
        part_map = torch.from_numpy(np.array(self.part_maps[self.rows[self._place(index)]]))
        masks = {name: part_map == number for number, name in enumerate(self.part_names, start=1)}
        return {name: mask for name, mask in masks.items() if mask.any()}

    def foreground(self, index: int) -> torch.Tensor | None:
        """The pixels of the object, bool H x W: those of its parts, or else all that its boxes touch; None
        where neither is known, or lies in the image.

        Args:
            index: which image of the set
        """
        index = self._place(index)
        parts = list(self.mask(index).values())
        if parts:
            return torch.stack(parts).any(0)
        height, width = self.pixels.shape[-2:]
        mask = torch.zeros(height, width, dtype=torch.bool)
        for left, top, right, bottom in self.records[index].boxes:
            rows = slice(max(math.floor(top), 0), max(math.ceil(bottom), 0))
            columns = slice(max(math.floor(left), 0), max(math.ceil(right), 0))
            mask[rows, columns] = True
        return mask if mask.any() else None

    def split(self, split_of: Sequence[str]) -> dict[str, ImageSet]:
        """The images by their split.

        Args:
            split_of: "train", "validation" or "test" for each image; "" leaves it out
        """
        names = ("train", "validation", "test")
        check_arguments(ImageSet.split, locals())
        if len(split_of) != len(self):
            raise ProtoPFaithError(f"{len(self)} images need as many splits, not {len(split_of)}.")
        return {name: self.subset([i for i, split in enumerate(split_of) if split == name]) for name in names}

    def with_findings(self, findings: Sequence[tuple[int, ...]], names: Sequence[str]) -> ImageSet:
        """The same images with findings instead of classes.

        Args:
            findings: for each image 1 (present), 0 (absent) or -1 (unknown) for each name
            names: of the findings
        """
        check_arguments(ImageSet.with_findings, locals())
        if len(findings) != len(self):
            raise ProtoPFaithError(f"{len(self)} images need the findings of each, not of {len(findings)}.")
        return ImageSet(
            self.pixels,
            [
                replace(record, label=-1, findings=tuple(known))
                for record, known in zip(self.records, findings, strict=True)
            ],
            names,
            rows=self.rows.tolist(),
            root=self.root,
            part_maps=self.part_maps,
            part_names=self.part_names,
            outcome="several",
        )

    def subset(self, indices: Sequence[int]) -> ImageSet:
        """A set of the chosen images that shares the pixels.

        Args:
            indices: which images, in their new order
        """
        check_arguments(ImageSet.subset, locals())
        indices = [self._place(index) for index in indices]
        return ImageSet(
            self.pixels,
            [self.records[i] for i in indices],
            self.classes,
            rows=[int(self.rows[i]) for i in indices],
            root=self.root,
            part_maps=self.part_maps,
            part_names=self.part_names,
            outcome=self.outcome,
        )


def class_labels(records: Sequence[Record], classes: int) -> torch.Tensor:
    """The class of every image, (N,)."""
    labels = torch.tensor([record.label for record in records], dtype=torch.long)
    if any(not 0 <= record.label < classes for record in records):
        raise ProtoPFaithError(
            f"Labels of images count the {classes} classes from 0, but one is {int(labels.max())}; name "
            "every class."
        )
    return labels


def finding_labels(records: Sequence[Record], findings: int) -> torch.Tensor:
    """1, 0 or not-a-number for every image and finding, (N, C)."""
    for record in records:
        if len(record.findings) != findings or not set(record.findings) <= {1, 0, -1}:
            raise ProtoPFaithError(
                f"{record.path} needs 1, 0 or -1 (not known) for each of the {findings} findings, but has "
                f"{list(record.findings)[:20]}; correct it."
            )
    labels = torch.tensor([record.findings for record in records]).reshape(-1, findings).float()
    return labels.masked_fill(labels < 0, math.nan)

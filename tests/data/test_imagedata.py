"""The three sets of a run: their fingerprint, and that they share no image."""

from __future__ import annotations

import numpy as np
import pytest

from protopfaith.data import ImageSet, Preprocessing, Record
from protopfaith.data.imagedata import check_no_overlap, fingerprint, split_pool
from protopfaith.errors import ProtoPFaithError


@pytest.fixture
def images() -> ImageSet:
    records = [Record(f"{i}.png", i % 2, f"hash{i}") for i in range(6)]
    return ImageSet(np.zeros((6, 3, 8, 8), np.uint8), records, ("a", "b"))


def test_a_pool_is_split_as_told(images: ImageSet) -> None:
    splits = ["train", "train", "validation", "test", "", "train"]
    data = split_pool(images, splits, Preprocessing((8, 8)), notes=("one left out",))
    assert data.splits() == {"train": ["0.png", "1.png", "5.png"], "validation": ["2.png"], "test": ["3.png"]}
    assert (data.outcome, data.notes) == ("one", ("one left out",))
    assert repr(data).startswith("ImageData(3 train, 1 validation, 1 test, 2 classes, fingerprint ")


def test_the_fingerprint_knows_path_content_and_class() -> None:
    base = [Record("a", 0, "x"), Record("b", 1, "y")]
    names = ("first", "second")
    same = fingerprint(base[::-1], names)
    assert fingerprint(base, names) == same
    others = [
        fingerprint([Record("a", 0, "x"), Record("c", 1, "y")], names),
        fingerprint([Record("a", 0, "x"), Record("b", 1, "z")], names),
        fingerprint([Record("a", 0, "x"), Record("b", 0, "y")], names),
        fingerprint(base, ("first", "third")),
    ]
    assert len({same, *others}) == 5


def test_overlap_is_found_by_content(images: ImageSet) -> None:
    check_no_overlap({"train": images.subset([0, 1]), "test": images.subset([2])})
    with pytest.raises(ProtoPFaithError, match=r"two splits: 1\.png \(train\) and 1\.png \(test\)"):
        check_no_overlap({"train": images.subset([0, 1]), "test": images.subset([2, 1])})

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import torch

from protopfaith.data.disk import Known, leave_out_test_copies, load_listing, official_split
from protopfaith.data.listing import Entry, Listing
from protopfaith.data.preprocessing import Preprocessing
from protopfaith.errors import ProtoPFaithError

PREPROCESSING = Preprocessing((16, 16))


@pytest.fixture
def listing(tmp_path: Path, save) -> Listing:
    entries = []
    for number in range(20):
        name = f"{number}.png"
        save(tmp_path / "root" / name, number)
        box = ((0.0, 0.0, 10.0, 7.0),)
        entries.append(Entry(name, "xy"[number % 2], "test" if number < 4 else "train", box))
    return Listing("mine", tmp_path / "root", tuple(entries), ("x", "y"))


def load(listing: Listing, **more):
    split = lambda known: official_split(known, 0, 0)  # noqa: E731
    return load_listing(
        listing, split, PREPROCESSING, **{"skip_unreadable": False, "split_name": "one", **more}
    )


def test_every_image_is_in_one_split_with_its_label_and_resized_box(listing) -> None:
    data = load(listing)
    assert {name: len(images) for name, images in data.sets().items()} == {
        "train": 12,
        "validation": 4,
        "test": 4,
    }
    assert Counter(data.test.labels.tolist()) == {0: 2, 1: 2}
    assert data.train.box(0) == pytest.approx((0, 0, 10 * 16 / 20, 7 * 16 / 14))
    index = data.test.paths.index("3.png")
    assert int(data.test.labels[index]) == 1
    assert torch.equal(data.test.image(index), PREPROCESSING.uint8(listing.read(listing.root / "3.png")))


def test_unreadable_files_are_an_error_or_skipped(listing) -> None:
    (listing.root / "7.png").write_bytes(b"no image")
    with pytest.raises(ProtoPFaithError, match=r"7\.png"):
        load(listing)
    data = load(listing, skip_unreadable=True)
    assert data.unreadable == ("7.png",)
    assert any("1 unreadable images are skipped" in note for note in data.notes)


def test_copies_of_test_images_leave_training(listing) -> None:
    (listing.root / "9.png").write_bytes((listing.root / "3.png").read_bytes())
    data = load(listing)
    assert "9.png" not in data.train.paths + data.validation.paths
    assert any("left out of training" in note for note in data.notes)


def test_leaving_out_keeps_the_test_set() -> None:
    known = [Known(Entry(name, "x"), sha) for name, sha in (("a", "1"), ("b", "1"), ("c", "2"))]
    assert leave_out_test_copies(known, ["train", "test", "train"]) == ["", "test", "train"]


def test_a_class_without_training_images(listing) -> None:
    entries = tuple(e for e in listing.entries if e.label == "x" or e.split == "test")
    with pytest.raises(ProtoPFaithError, match="class 'y' is in test but not in training"):
        load(Listing("mine", listing.root, entries, listing.classes))

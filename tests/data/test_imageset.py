"""Image sets: shared pixels, subsets, boxes, masks, and cheap copies for loading processes."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from protopfaith.data import ImageSet, Record


@pytest.fixture
def pixels() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (6, 3, 8, 8), dtype=np.uint8)


@pytest.fixture
def images(pixels: np.ndarray) -> ImageSet:
    records = [Record(f"{i}.png", i % 2, f"hash{i}", boxes=((i, 1, 5, 6), (0, 2, 4, 7))) for i in range(6)]
    part_maps = np.zeros((6, 8, 8), np.uint8)
    part_maps[:, 2:4, 2:4] = 1
    part_maps[3, 5:, 5:] = 3
    return ImageSet(pixels, records, ("a", "b"), part_maps=part_maps, part_names=("head", "wing", "tail"))


def test_items(images: ImageSet, pixels: np.ndarray) -> None:
    image, label = images[5]
    assert torch.equal(image, torch.from_numpy(pixels[5]))
    assert label == 1
    assert images.sha256(5) == "hash5"
    assert torch.equal(images.uint8(), torch.from_numpy(pixels))


def test_writing_to_an_item_leaves_the_set_alone(images: ImageSet) -> None:
    images[0][0].zero_()
    assert images.image(0).any()


def test_a_subset_shares_the_pixels(images: ImageSet) -> None:
    subset = images.subset([4, 3]).subset([1])
    assert subset.pixels is images.pixels
    assert subset.paths == ["3.png"]
    assert torch.equal(subset.uint8()[0], images.image(3))
    assert set(subset.mask(0)) == {"head", "tail"}


def test_the_box_is_around_all_boxes(images: ImageSet) -> None:
    assert images.boxes(3).shape == (2, 4)
    assert images.box(3) == (0, 1, 5, 7)


def test_masks(images: ImageSet) -> None:
    masks = images.mask(3)
    assert masks["head"].dtype == torch.bool
    assert int(masks["head"].sum()) == 4
    assert int(masks["tail"].sum()) == 9
    assert "wing" not in masks


def object_in(*boxes: tuple[float, float, float, float]) -> torch.Tensor | None:
    """The foreground of an image of 8 x 10 pixels with these boxes."""
    return ImageSet(np.zeros((1, 3, 8, 10), np.uint8), [Record("a", 0, "1", boxes=boxes)], ("x",)).foreground(
        0
    )


@given(st.lists(st.tuples(*[st.floats(-15, 15)] * 4), max_size=3))
def test_the_object_is_all_that_its_boxes_touch(
    boxes: list[tuple[float, float, float, float]],
) -> None:
    """Pixel by pixel; boxes may lie partly or wholly outside of the image, on any side."""
    expected = torch.zeros(8, 10, dtype=torch.bool)
    for y, x in np.ndindex(8, 10):
        for left, top, right, bottom in boxes:
            expected[y, x] |= left < x + 1 and x < right and top < y + 1 and y < bottom
    found = object_in(*boxes)
    assert torch.equal(torch.zeros_like(expected) if found is None else found, expected)
    assert (found is None) == (not expected.any())


def test_a_box_above_the_image_covers_nothing_of_it() -> None:
    assert object_in((1, -6, 9, -2)) is None
    assert object_in((-6, 1, -2, 7)) is None
    assert object_in((-3, -3, 2, 2)).sum() == 4  # type: ignore[union-attr]
    assert object_in() is None


def test_parts_tell_more_than_boxes(images: ImageSet) -> None:
    assert int(images.foreground(3).sum()) == 4 + 9  # type: ignore[union-attr]


def test_a_mapped_set_travels_as_a_file_name(images: ImageSet, tmp_path: Path) -> None:
    np.save(tmp_path / "pixels.npy", np.repeat(images.pixels, 500, 0))
    mapped = ImageSet(np.load(tmp_path / "pixels.npy", mmap_mode="r"), images.records, images.classes)
    packed = pickle.dumps(mapped)
    assert len(packed) < 10_000
    again = pickle.loads(packed)
    assert isinstance(again.pixels, np.memmap)
    assert torch.equal(again.uint8(), mapped.uint8())
    assert torch.equal(pickle.loads(pickle.dumps(images)).uint8(), images.uint8())


def test_loading_processes_see_the_same_images(images: ImageSet) -> None:
    loader = torch.utils.data.DataLoader(images, batch_size=4, num_workers=1)
    assert torch.equal(torch.cat([batch for batch, _ in loader]), images.uint8())

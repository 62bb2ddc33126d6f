"""The contact sheet shows the right images at the right places."""

from __future__ import annotations

import numpy as np

from protopfaith.data import ImageSet, Record, contact_sheet


def colored_set() -> ImageSet:
    """Class k is gray level 50 * (k + 1), four images of each of three classes."""
    labels = [i % 3 for i in range(12)]
    pixels = np.stack([np.full((1, 8, 8), 50 * (label + 1), np.uint8) for label in labels])
    records = [Record(f"{i}", label, f"{i}", boxes=((2, 2, 6, 6),)) for i, label in enumerate(labels)]
    return ImageSet(pixels, records, ("first", "second", "third"))


def test_one_row_for_each_class() -> None:
    sheet = np.asarray(contact_sheet(colored_set(), rows=3, columns=4, tile=20))
    assert sheet.shape == (3 * 36, 80, 3)
    for row in range(3):
        for column in range(4):
            assert (sheet[36 * row + 26, 20 * column + 10] == 50 * (row + 1)).all()


def test_fewer_rows_than_classes_and_more_columns_than_images() -> None:
    sheet = np.asarray(contact_sheet(colored_set(), rows=2, columns=6, tile=20, seed=1))
    assert sheet.shape == (72, 120, 3)
    assert (sheet[30, 110] == 255).all()


def test_boxes_are_drawn() -> None:
    plain, boxed = (np.asarray(contact_sheet(colored_set(), 1, 1, tile=16, boxes=b)) for b in (False, True))
    assert (plain != boxed).any()
    assert (boxed[16 + 8, 4] == (255, 200, 0)).all()

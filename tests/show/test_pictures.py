from __future__ import annotations

from protopfaith.explanation import Explanation
from protopfaith.show.pictures import Meaning, Pictures, frame


def test_regions_that_are_equal_are_stored_once(explanation: Explanation) -> None:
    pictures, meaning = Pictures(), Meaning("", "", "")
    for one in explanation.evidence:
        pictures.ours(explanation.pixels, one.test, 1.0, "a map", meaning)
    assert len(pictures.data()["maps"]) == len(explanation.evidence)
    assert len(pictures.data()["labels"]) == 1


def test_a_map_that_nobody_can_hover_needs_no_numbers(explanation: Explanation) -> None:
    pictures = Pictures()
    shown = pictures.ours(explanation.pixels, explanation.class_map, 1.0, "a map")
    assert shown.map is None
    assert pictures.data() == {"maps": [], "labels": []}


def test_a_frame_is_in_percent() -> None:
    box = frame((10, 20, 30, 60), (100, 200))
    assert (box.x, box.y, box.width, box.height) == (5, 20, 10, 40)

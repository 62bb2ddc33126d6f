from __future__ import annotations

from dataclasses import replace

import torch

from protopfaith.explanation import Explanation
from protopfaith.show.heat import decided
from protopfaith.show.pictures import Meaning, Pictures


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
    assert pictures.data()["maps"] == []


def test_an_image_is_stored_once_however_often_it_is_shown(explanation: Explanation) -> None:
    pictures = Pictures()
    first, second = (pictures.plain(explanation.pixels, alt) for alt in ("one", "two"))
    pictures.plain(explanation.pixels.flip(2), "another")
    assert first.image is second.image
    assert len(pictures.images) == 2


def test_only_decided_regions_are_colored(explanation: Explanation) -> None:
    mine = explanation.class_map
    heat = Pictures().ours(explanation.pixels, mine, 1.0, "a map").heat
    assert heat is not None
    assert [fill.player for fill in heat.fills] == decided(mine).nonzero().flatten().tolist()


def test_without_errors_everything_is_colored_and_nothing_outlined(explanation: Explanation) -> None:
    mine = explanation.class_map
    unknown = replace(mine, standard_errors=torch.full_like(mine.values, torch.nan))
    heat = Pictures().ours(explanation.pixels, unknown, 1.0, "a map").heat
    assert heat is not None
    assert len(heat.fills) == len(mine.values)
    assert heat.edges == ()
    assert heat.undecided == ""


def test_a_frame_has_a_corner_and_a_size(explanation: Explanation) -> None:
    assert Pictures().boxed(explanation.pixels, "", (10, 20, 30, 60)).box == (10, 20, 20, 40)

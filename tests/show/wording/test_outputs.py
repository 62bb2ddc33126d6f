from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from protopfaith.explanation import Explanation
from protopfaith.show.wording.decision import lead
from protopfaith.show.wording.outputs import (
    UNCHANGED,
    about_empty,
    adds_up,
    against,
    caution,
    in_favor,
    maps_by_output,
    output_name,
    where_heading,
)
from protopfaith.specs import OUTPUTS


@pytest.mark.parametrize("output", OUTPUTS)
def test_every_output_has_a_name_and_a_sum(explanation: Explanation, output: str) -> None:
    regions = maps_by_output(explanation)[output]
    assert output_name(explanation, output)
    said = adds_up(explanation, output, regions)
    total = float(regions.values.sum())
    assert ("nothing" if abs(total) < UNCHANGED else f"{total:+.3g}") in said
    empty = explanation.empty_prediction
    assert empty is not None
    assert explanation.class_names[empty] in about_empty(explanation)
    rival = explanation.class_names[explanation.rival or 0]
    assert (rival in in_favor(explanation, output)) is (output == "versus")


def test_the_map_that_was_asked_for_comes_first(explanation: Explanation) -> None:
    found = maps_by_output(explanation)
    assert next(iter(found)) == explanation.output
    assert found[explanation.output] is explanation.class_map
    assert len(found) == len(set(found)) == 4


def test_explanations_of_earlier_versions_have_one_map(explanation: Explanation) -> None:
    old = replace(explanation, output="logit", other_maps={}, empty_probabilities=None)
    assert list(maps_by_output(old)) == ["logit"]
    assert "empty image" not in adds_up(old, "logit", old.class_map)
    assert about_empty(old) == ""


@pytest.mark.parametrize(("chance", "told"), [(0.5, False), (0.9, True)])
def test_an_empty_image_that_could_be_either_is_no_caution(
    explanation: Explanation, chance: float, told: bool
) -> None:
    empty = torch.zeros_like(explanation.probabilities)
    empty[explanation.target], empty[explanation.target - 1] = chance, 1 - chance
    assert bool(caution(replace(explanation, empty_probabilities=empty))) is told


def test_the_map_of_a_class_that_was_not_decided_for_is_not_called_the_decision(
    explanation: Explanation,
) -> None:
    decided = replace(explanation, target=explanation.prediction)
    assert where_heading(decided) == "Where the decision comes from"
    other = replace(explanation, target=(explanation.prediction + 1) % len(explanation.class_names))
    assert "decision" not in where_heading(other)
    assert explanation.class_names[other.target] in where_heading(other)


def test_regions_that_speak_against_the_decision_are_told_first(explanation: Explanation) -> None:
    """All regions together lower the score of what was decided: an empty image is called the same."""
    target = explanation.prediction
    empty = torch.full_like(explanation.probabilities, 0.001)
    empty[target] = 0.99
    here = torch.full_like(explanation.probabilities, 0.01)
    here[target] = 0.9
    values = explanation.class_map.values
    lowered = replace(explanation.class_map, values=-10 * values.abs() / values.abs().sum(), sign=1)
    turned = replace(
        explanation, target=target, class_map=lowered, empty_probabilities=empty, probabilities=here
    )
    said = against(turned)
    assert "speak against it" in said
    assert "99.0%" in said
    assert said in lead(turned)
    raised = replace(turned, class_map=replace(lowered, values=-lowered.values))
    assert against(raised) == ""
    surer = replace(turned, empty_probabilities=here, probabilities=empty)
    assert "it is the highest all the same" in against(surer)


def test_a_map_that_adds_up_to_nothing_says_so(explanation: Explanation) -> None:
    values = explanation.class_map.values
    none = replace(explanation.class_map, values=values - values.mean())
    said = adds_up(explanation, "log_probability", none)
    assert "add up to nothing: the log probability of" in said
    assert "is the same on this image as on the empty one." in said
    assert "+0:" not in said

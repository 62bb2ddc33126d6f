"""An explanation is what decision, game and sources say, put together."""

from __future__ import annotations

import math

import pytest
import torch

from protopfaith.data import load_data
from protopfaith.explanation import Explainer, Explanation
from protopfaith.network import ProtoTree

PLAN = {"players": 24, "budget": 96}


def test_evidence_is_what_the_network_says_of_each_prototype(
    explainer: Explainer, explanation: Explanation
) -> None:
    model, preprocessing = explainer.model, explainer.preprocessing
    assert preprocessing is not None
    with torch.no_grad():
        distances = model.distances(preprocessing(explanation.pixels)[None])[0]
    complete = explanation.decomposition
    assert complete is not None
    scores = dict(zip(complete.prototypes.tolist(), complete.scores.tolist(), strict=True))
    for one in explanation.evidence:
        assert one.distance == pytest.approx(float(distances[one.prototype]), rel=1e-4)
        assert one.similarity == pytest.approx(-one.distance)
        assert one.class_index == int(model.prototype_classes[one.prototype])
        assert one.class_name == model.class_names[one.class_index]
        assert one.score == scores[one.prototype]
        assert one.source == model.sources[one.prototype]
        assert torch.equal(one.test.values, explanation.prototype_values[one.prototype])


def test_maps_add_up_to_what_they_are_of(explanation: Explanation) -> None:
    maps = [explanation.class_map, *explanation.other_maps.values()]
    maps += [one.test for one in explanation.evidence]
    for one in maps:
        assert float(one.values.sum()) == pytest.approx(one.total, rel=1e-4, abs=1e-4)
    assert explanation.output not in explanation.other_maps


def test_what_was_asked_is_told(explainer: Explainer, pixels: torch.Tensor) -> None:
    found = explainer.explain(pixels, **PLAN, seed=3, sources=False)
    assert found.settings["budget"] == 96
    assert found.settings["seed"] == 3
    assert found.settings["device"] == "cpu"
    assert "24" in found.settings["players"]
    assert found.network["weights_sha256"] == explainer.weights_hash
    assert found.network["prototypes"] == len(explainer.model.prototypes)
    assert all(one.source_side is None for one in found.evidence)
    assert found.evaluations_in_all == found.evaluations


def test_sources_have_sides_and_cost_evaluations(explainer: Explainer, pixels: torch.Tensor) -> None:
    asked = {**PLAN, "source_budget": 64, "seed": 4}  # not known yet
    found = explainer.explain(pixels, **asked)
    assert all(one.source_side is not None for one in found.evidence)
    assert found.evaluations_in_all is not None
    assert found.evaluations_in_all > found.evaluations


def test_a_second_baseline_is_compared_with_the_first(explainer: Explainer, pixels: torch.Tensor) -> None:
    found = explainer.explain(pixels, **PLAN, sources=False, second_baseline="blur")
    other = explainer.explain(pixels, **PLAN, sources=False, baseline="blur")
    assert found.second is not None
    assert torch.allclose(found.second.class_map.values, other.class_map.values, atol=1e-5)
    assert set(found.second.prototype_agreement) == {one.prototype for one in found.evidence}
    assert found.evaluations_in_all == found.evaluations + other.evaluations


def test_in_a_tree_prototypes_have_the_log_probabilities_of_their_turns() -> None:
    torch.manual_seed(0)
    data = load_data("birds", size=32, train=16, validation=8, test=8)
    model = ProtoTree("small", list(data.classes), depth=2, prototype_channels=8).eval()
    explainer = Explainer(model, preprocessing=data.preprocessing, images=data)
    found = explainer.explain(data.test.image(0), players=16, budget=64, sources=False)
    assert found.route is not None
    assert found.decomposition is None
    turns = {turn.prototype: turn.log_probability for turn in found.route.turns}
    assert {one.prototype for one in found.evidence} >= turns.keys()
    for one in found.evidence:
        assert one.score == pytest.approx(turns.get(one.prototype, math.nan), nan_ok=True)
        assert math.isnan(one.weight)

from __future__ import annotations

import copy

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer, Explanation, Settings, explain
from protopfaith.explanation.decision import choose_output, decide
from protopfaith.explanation.picture import open_picture


def test_prototypes_are_ranked_by_the_paper_score(explanation: Explanation) -> None:
    scores = [one.paper_score for one in explanation.evidence]
    assert scores == sorted(scores, reverse=True)
    assert {one.class_index for one in explanation.evidence} == {explanation.target}
    assert explanation.prediction == explanation.target
    assert float(explanation.probabilities.sum()) == pytest.approx(1)


def test_duplicates_are_found(explainer: Explainer, pixels: torch.Tensor) -> None:
    model = copy.deepcopy(explainer.model)
    with torch.no_grad():
        model.prototypes[1] = model.prototypes[0]
        model.prototypes[3] = model.prototypes[2] + 1e-5
    found = explain(
        model, pixels, target=0, versus=1, budget=96, sources=False, preprocessing=explainer.preprocessing
    )
    marks = {one.prototype: (one.duplicate_of, one.duplicate_kind) for one in found.evidence}
    assert sorted(marks[p][1] for p in (0, 1)) == ["", "identical"]
    assert sorted(marks[p][1] for p in (2, 3)) == ["", "near"]
    first = next(one.prototype for one in found.evidence if one.class_index == 0)
    assert marks[1 - first] == (first, "identical")


def test_a_network_that_answers_at_random_is_refused(explainer: Explainer) -> None:
    model = copy.deepcopy(explainer.model)
    model.encoder = torch.nn.Sequential(model.encoder, _Noise())
    with pytest.raises(ProtoPFaithError, match="differently when asked twice"):
        explain(model, torch.rand(3, 48, 48), sources=False)


class _Noise(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand_like(x)


def test_what_is_decided_is_what_the_network_says(explainer: Explainer, pixels: torch.Tensor) -> None:
    model = explainer.model
    picture = open_picture(pixels, explainer.preprocessing, model)
    with torch.no_grad():
        logits = model(picture.input[None])[0].double()
    ranked = logits.argsort(descending=True).tolist()
    found = decide(model, picture, temperature=2.0)
    assert torch.allclose(found.logits, logits / 2, atol=1e-5)
    assert (found.target, found.rival) == (ranked[0], ranked[1])
    assert decide(model, picture, target=ranked[3]).rival == ranked[0]


def test_a_comparison_explains_a_difference_only(explainer: Explainer) -> None:
    model = explainer.model
    assert choose_output(model, Settings(output="versus"), "dog") == "versus"
    assert choose_output(model, Settings(), "dog") == "versus"
    with pytest.raises(ProtoPFaithError, match="leave out one of them"):
        choose_output(model, Settings(output="logit"), "dog")

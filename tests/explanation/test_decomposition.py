"""Scores against the formulas, written out."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer, decompose, paper_scores
from protopfaith.explanation.decomposition import class_row, find_class
from protopfaith.network import ProtoPNet, prune


def network(similarity: str = "linear", seed: int = 0) -> ProtoPNet:
    torch.manual_seed(seed)
    model = ProtoPNet("small", ["ant", "bee", "cat"], [2, 3, 1], 8, similarity=similarity).eval()
    with torch.no_grad():
        model.classifier.weight.add_(0.3 * torch.randn_like(model.classifier.weight))
    return model


def similarity_of(kind: str, s: float) -> float:
    return -s if kind == "linear" else math.log((s + 1) / (s + 1e-4))


@pytest.mark.parametrize("kind", ["linear", "log"])
@pytest.mark.parametrize("target", [0, 1, 2])
@settings(max_examples=10, deadline=None)
@given(distances=st.lists(st.floats(0, 30), min_size=6, max_size=6))
def test_scores_are_the_formulas(kind: str, target: int, distances: list[float]) -> None:
    model = network(kind)
    a, owners = model.classifier.weight.tolist(), model.prototype_classes.tolist()
    sim = [similarity_of(kind, s) for s in distances]
    logits = [sum(a[c][j] * sim[j] for j in range(6)) for c in range(3)]
    own_logits = [sum(a[c][j] * sim[j] for j in range(6) if owners[j] == c) for c in range(3)]
    mine = [j for j in range(6) if owners[j] == target]
    log_r = math.log(sum(math.exp(x - max(logits)) for x in logits)) + max(logits)
    own_r = math.log(sum(math.exp(x - max(own_logits)) for x in own_logits)) + max(own_logits)

    found = decompose(model, torch.tensor(distances, dtype=torch.float64), target)
    expected = torch.tensor([a[target][j] * sim[j] - log_r / len(mine) for j in mine], dtype=torch.float64)
    assert torch.allclose(found.scores, expected, atol=1e-6)
    assert found.prototypes.tolist() == mine
    assert found.total == pytest.approx(logits[target] - log_r, abs=1e-6)

    paper = paper_scores(model, torch.tensor(distances, dtype=torch.float64), target)
    expected = torch.tensor([a[target][j] * sim[j] - own_r / len(mine) for j in mine], dtype=torch.float64)
    assert torch.allclose(paper, expected, atol=1e-6)


def test_sums_equal_the_log_probability_of_trained_networks(explainer: Explainer) -> None:
    """The network's own float32 output; rounding grows with the logits, so it is told in double precision."""
    model = explainer.model
    images = torch.stack([explainer.images.sets[2].image(i) for i in range(8)])  # type: ignore[union-attr]
    with torch.no_grad():
        distances = model.distances(explainer.preprocessing.normalize(images))  # type: ignore[union-attr]
        log_p = copy.deepcopy(model).double().logits(distances.double()).log_softmax(1)
    for row, expected in zip(distances, log_p, strict=True):
        for target in range(len(model.class_names)):
            found = decompose(model, row, target)
            parts = float(found.weighted.sum()) + found.rest - found.log_normalizer
            assert found.total == pytest.approx(float(expected[target]), abs=1e-5)
            assert parts == pytest.approx(float(expected[target]), abs=1e-5)
        assert decompose(model, row).target == int(expected.argmax())


def test_a_difference_of_classes_adds_up_and_needs_no_normalizer() -> None:
    model = network()
    distances = torch.rand(6) * 5
    log_p = model.logits(distances[None]).detach().double().log_softmax(1)[0]
    found = decompose(model, distances, 0, 1)
    assert found.log_normalizer == 0
    assert found.prototypes.tolist() == [0, 1, 2, 3, 4]
    assert found.total == pytest.approx(float(log_p[0] - log_p[1]), abs=1e-5)
    assert torch.equal(class_row(model, 0, 1), model.classifier.weight[0] - model.classifier.weight[1])


def test_pruned_networks_are_decomposed_alike() -> None:
    model = prune(network(), [0, 2, 3, 5])
    distances = torch.rand(4)
    log_p = model.logits(distances[None]).detach().double().log_softmax(1)[0]
    assert decompose(model, distances, 1).total == pytest.approx(float(log_p[1]), abs=1e-5)


def test_classes_by_name_and_number() -> None:
    model = network()
    assert [find_class(model, name) for name in ("bee", "2", 0, None)] == [1, 2, 0, None]
    with pytest.raises(ProtoPFaithError, match=r"no class 'bea' .*did you mean 'bee'"):
        find_class(model, "bea")
    for bad in (3, -1, "7"):
        with pytest.raises(ProtoPFaithError, match="no class"):
            find_class(model, bad)
    with pytest.raises(ProtoPFaithError, match="cannot be compared with itself"):
        decompose(model, torch.rand(6), 1, 1)


def test_prototypes_of_no_class_count_for_none() -> None:
    class Common(ProtoPNet):
        def readout(self) -> torch.Tensor:  # what is learned, as it is
            return self.classifier.weight

    network = Common("small", ["cat", "dog"], 2, 8).eval()
    distances = torch.arange(1.0, 5.0)
    expected = paper_scores(network, distances, 0)
    network.prototype_classes[3] = -1
    found = paper_scores(network, distances, 0)
    assert len(found) == len(expected) == 2
    similarity = network.similarities(distances)
    own = network.classifier.weight.detach()[[0, 0, 1], [0, 1, 2]] * similarity[:3]
    logits = torch.stack([own[:2].sum(), own[2]]).double()
    assert torch.allclose(found, own[:2].double() - logits.logsumexp(0) / 2, atol=1e-6)
    parts = decompose(network, distances, target=0)
    assert not parts.weighted.requires_grad
    log_p = network.logits(distances[None]).log_softmax(1)[0, 0].detach()
    assert parts.total == pytest.approx(float(log_p), abs=1e-5)

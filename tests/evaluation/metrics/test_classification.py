from __future__ import annotations

import io
import json
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.metrics.classification import Classification, classification


def scores(n: int, classes: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (n,), generator=generator)
    logits = torch.randn(n, classes, generator=generator)
    logits[range(n), labels] += 0.7
    return logits, labels


def obvious_auroc(score: list[float], positive: list[bool]) -> float:
    """The fraction of (positive, negative) pairs in the right order; ties count half."""
    pairs = [
        (a > b) + 0.5 * (a == b)
        for a, is_positive in zip(score, positive, strict=True)
        if is_positive
        for b, other in zip(score, positive, strict=True)
        if not other
    ]
    return sum(pairs) / len(pairs) if pairs else math.nan


def same(ours: float, obvious: float) -> bool:
    return math.isnan(ours) if math.isnan(obvious) else ours == pytest.approx(obvious, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 40), classes=st.integers(2, 6), seed=st.integers(0, 10_000))
def test_equals_the_definitions(n, classes, seed):
    logits, labels = scores(n, classes, seed)
    result = classification(logits, labels, classes)
    predicted = logits.argmax(1)
    probabilities = logits.double().log_softmax(1)
    sensitivities = []
    for c in range(classes):
        of_class = [i for i in range(n) if labels[i] == c]
        others = [i for i in range(n) if labels[i] != c]
        hits = [bool(predicted[i] == c) for i in of_class]
        passes = [bool(predicted[i] != c) for i in others]
        sensitivity = sum(hits) / len(hits) if hits else math.nan
        specificity = sum(passes) / len(passes) if passes else math.nan
        auroc = obvious_auroc(probabilities[:, c].tolist(), (labels == c).tolist())
        assert same(result.sensitivity[c], sensitivity)
        assert same(result.specificity[c], specificity)
        assert same(result.auroc_per_class[c], auroc)
        if hits:
            sensitivities.append(sensitivity)
        for other in range(classes):
            assert result.confusion[c][other] == sum(bool(predicted[i] == other) for i in of_class)
    assert result.balanced_accuracy == pytest.approx(sum(sensitivities) / len(sensitivities))
    assert result.accuracy == pytest.approx((predicted == labels).double().mean().item())
    assert result.images == n


def test_two_classes_have_one_auroc():
    logits, labels = scores(50, 2, 0)
    logits = (logits * 4).round()  # with ties
    result = classification(logits, labels, ["healthy", "ill"])
    margin = logits[:, 1].double() - logits[:, 0].double()
    expected = obvious_auroc(margin.tolist(), (labels == 1).tolist())
    assert result.auroc == pytest.approx(expected)
    assert result.auroc_per_class[0] == pytest.approx(result.auroc_per_class[1])


def test_confident_networks_keep_their_order():
    """Probabilities of these logits are all exactly one in float32; their order still counts."""
    logits = torch.tensor([[0.0, 150.0], [0.0, 200.0], [0.0, 300.0], [0.0, 120.0]])
    assert classification(logits, torch.tensor([0, 1, 1, 0]), 2).auroc == 1.0


def test_dict_survives_json():
    logits, labels = scores(10, 3, 0)
    labels = labels.clamp(max=1)  # the last class has no image
    result = classification(logits, labels, ["a", "b", "c"])
    again = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert again["sensitivity"]["c"] is None
    assert again["balanced_accuracy"] == pytest.approx(result.balanced_accuracy)
    assert again["confusion"] == [list(row) for row in result.confusion]


def test_table_shows_every_class():
    logits, labels = scores(30, 3, 0)
    result = classification(logits, labels, ["[bold]wren", "tit", "owl"])
    output = io.StringIO()
    Console(file=output, width=100).print(result.table())
    text = output.getvalue()
    assert all(name in text for name in ("[bold]wren", "tit", "owl", "mean"))
    assert f"{result.balanced_accuracy:.3f}" in text


def test_distinct_prototypes_are_told_for_each_class():
    plain = classification(*scores(30, 3, 0), ["wren", "tit", "owl"])
    result = replace(plain, distinct_prototypes=(7, 11, 13))
    assert "distinct_prototypes" not in plain.to_dict()
    assert result.to_dict()["distinct_prototypes"] == {"wren": 7, "tit": 11, "owl": 13}
    output = io.StringIO()
    Console(file=output, width=100).print(result.table())
    rows = [line.split("│")[1:-1] for line in output.getvalue().splitlines() if line.startswith("│")]
    assert [row[-1].strip() for row in rows] == ["7", "11", "13", ""]


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (torch.zeros(3, 2), torch.zeros(2), "as many labels"),
        (torch.zeros(0, 2), torch.zeros(0), "at least"),
        (torch.zeros(2, 3), torch.zeros(2), "x 2 classes"),
        (torch.zeros(2, 2), torch.tensor([0, 2]), "Labels go from 0 to 1"),
        (torch.tensor([[0, torch.nan]]), torch.zeros(1), "1 of 1 images are not finite"),
    ],
)
def test_bad_input(logits, labels, message):
    with pytest.raises(ProtoPFaithError, match=message):
        classification(logits, labels, 2)


def test_result_is_a_plain_object():
    result = classification(*scores(5, 2, 0), 2)
    assert isinstance(result, Classification)
    assert result == classification(*scores(5, 2, 0), 2)

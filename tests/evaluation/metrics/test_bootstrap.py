"""Intervals against slow resampling of images, and properties of groups."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.metrics import bootstrap as module
from protopfaith.evaluation.metrics.bootstrap import (
    SCORES,
    Interval,
    bootstrap,
    difference,
    group_numbers,
    weighted_auroc,
)
from protopfaith.evaluation.metrics.classification import classification


def example(seed: int, n: int = 60, classes: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (n,), generator=generator)
    logits = torch.randn(n, classes, generator=generator) + torch.nn.functional.one_hot(labels, classes)
    return logits, labels


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_scores_are_those_of_classification(classes: int) -> None:
    logits, labels = example(classes, classes=classes)
    found, expected = bootstrap(logits, labels, resamples=10), classification(logits, labels, classes)
    assert found.values["accuracy"] == pytest.approx(expected.accuracy)
    assert found.values["balanced_accuracy"] == pytest.approx(expected.balanced_accuracy)
    assert found.values["auroc"] == pytest.approx(expected.auroc, abs=1e-6)


def test_intervals_are_those_of_repeating_images() -> None:
    """The slow way: copy the images of the drawn groups and judge the copies."""
    logits, labels = example(1)
    groups = [f"p{i // 3}" for i in range(len(labels))]
    rng = np.random.default_rng(0)
    slow: dict[str, list[float]] = {score: [] for score in SCORES}
    for _ in range(600):
        rows = [3 * group + k for group in rng.integers(0, 20, 20) for k in range(3)]
        result = classification(logits[rows], labels[rows], 3)
        slow["accuracy"].append(result.accuracy)
        slow["balanced_accuracy"].append(result.balanced_accuracy)
        slow["auroc"].append(result.auroc)
    found = bootstrap(logits, labels, groups, resamples=4000)
    assert (found.images, found.groups) == (60, 20)
    for score in SCORES:
        draws = found.draws[score]
        error = float(draws.std()) / math.sqrt(600)
        assert float(draws.mean()) == pytest.approx(np.mean(slow[score]), abs=5 * error)
        assert float(draws.std()) == pytest.approx(np.std(slow[score]), rel=0.2)


@given(st.integers(0, 1000))
def test_weighted_auroc_counts_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, positive = rng.integers(0, 5, 12).astype(float), rng.random(12) < 0.5
    weights = rng.integers(0, 3, (2, 12)).astype(float)
    positive[:2] = True, False
    weights[:, :2] = 1
    found = weighted_auroc(torch.tensor(scores), torch.tensor(positive), torch.tensor(weights))
    for row, value in zip(weights, found.tolist(), strict=True):
        pairs = [
            (row[i] * row[j], (scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j]))
            for i in range(12)
            for j in range(12)
            if positive[i] and not positive[j]
        ]
        assert value == pytest.approx(sum(w * s for w, s in pairs) / sum(w for w, _ in pairs))


def test_many_positive_images_are_counted_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randint(50, (300,), generator=generator).double()
    positive = torch.rand(300, generator=generator) < 0.3
    weights = torch.randint(4, (20, 300), generator=generator).double()
    by_pairs = weighted_auroc(scores, positive, weights)
    monkeypatch.setattr(module, "FEW", 0)
    torch.testing.assert_close(weighted_auroc(scores, positive, weights), by_pairs)


def test_copies_of_images_make_no_interval_narrower_when_they_are_one_group() -> None:
    logits, labels = example(2)
    alone = bootstrap(logits, labels, resamples=2000)
    tripled, again = logits.repeat_interleave(3, 0), labels.repeat_interleave(3)
    grouped = bootstrap(tripled, again, [f"p{i // 3}" for i in range(180)], resamples=2000)
    naive = bootstrap(tripled, again, resamples=2000)
    spread = [float(one.draws["accuracy"].std()) for one in (alone, grouped, naive)]
    assert spread[1] == pytest.approx(spread[0], rel=0.1)
    assert spread[2] < 0.7 * spread[0]


def test_the_seed_decides() -> None:
    logits, labels = example(3)
    first, again, other = (bootstrap(logits, labels, resamples=50, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first.draws["auroc"], again.draws["auroc"])
    assert not torch.equal(first.draws["auroc"], other.draws["auroc"])


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    generator = torch.Generator().manual_seed(0)
    inside = 0
    for seed in range(200):
        right = torch.rand(80, generator=generator) < 0.8
        logits = torch.stack([right.double(), 1 - right.double()], 1)
        found = bootstrap(logits, torch.zeros(80, dtype=torch.long), resamples=400, seed=seed)
        interval = found.interval("accuracy")
        inside += interval.low <= 0.8 <= interval.high
    assert 0.88 <= inside / 200 <= 0.99


def test_a_score_without_errors_is_not_certain() -> None:
    labels = torch.arange(40) % 2
    right = torch.nn.functional.one_hot(labels).float()
    for logits, value in ((right, 1.0), (-right, 0.0)):
        interval = bootstrap(logits, labels, resamples=20).interval("balanced_accuracy")
        assert interval.value == value
        assert 0.85 < 1 - (interval.high - interval.low) < 0.95  # exact: 0.025 ** (1 / 40)
    assert math.isnan(bootstrap(right, labels, resamples=20).interval("auroc").low)
    uneven = bootstrap(right, labels, ["", *["p"] * 39], resamples=20)
    assert uneven.interval("accuracy").low < 0.2  # two groups say little


def test_one_group_has_no_interval() -> None:
    logits, labels = example(4)
    found = bootstrap(logits, labels, ["p"] * 60, resamples=20)
    assert found.groups == 1
    assert math.isnan(found.interval("accuracy").low)
    assert str(found.interval("accuracy")).count(".") == 1


def test_differences_hold_both_uncertainties() -> None:
    a, b = Interval(0.8, 0.7, 0.85), Interval(0.6, 0.5, 0.7)
    found = difference(a, b)
    assert found.value == pytest.approx(0.2)
    assert found.low == pytest.approx(0.2 - math.hypot(0.1, 0.1))
    assert found.high == pytest.approx(0.2 + math.hypot(0.05, 0.1))
    back = difference(b, a)
    assert (back.low, back.high) == pytest.approx((-found.high, -found.low))


def test_bad_inputs_are_one_sentence() -> None:
    logits, labels = example(5)
    with pytest.raises(ProtoPFaithError, match="60 images but 3 groups"):
        bootstrap(logits, labels, ["a", "b", "c"])
    with pytest.raises(ProtoPFaithError, match="resamples"):
        bootstrap(logits, labels, resamples=0)
    with pytest.raises(ProtoPFaithError, match="finite"):
        bootstrap(logits * math.inf, labels)
    assert group_numbers(["", ""]).tolist() == [0, 1]


def test_where_all_resamples_agree_there_is_no_interval() -> None:
    """A network that calls all images the same is not exactly half right, however few they are."""
    same = torch.tensor([[1.0, 0.0]] * 8)
    found = bootstrap(same, torch.tensor([0, 1] * 4), resamples=200)
    assert str(found.interval("balanced_accuracy")) == "0.500"
    one = bootstrap(*example(2), ["a"] * 60, resamples=20)
    assert all(math.isnan(one.interval(score).low) for score in SCORES)


@pytest.mark.parametrize("ends", [(2, 0), ("a", 1)])
def test_an_interval_has_two_ends_in_their_order(ends):
    with pytest.raises(ProtoPFaithError, match="interval"):
        Interval(1, *ends)

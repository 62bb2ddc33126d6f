"""Thresholds of findings, compared with trying all of them."""

from __future__ import annotations

import math

import pytest
import torch

from protopfaith.training.thresholds import (
    FindingRule,
    _best_threshold,
    choose_rules,
    rules_from_json,
    rules_to_json,
)


def accuracy(p, y, threshold):
    with_it, without = p[y == 1], p[y == 0]
    return float((with_it >= threshold).double().mean() + (without < threshold).double().mean())


@pytest.mark.parametrize("seed", range(5))
def test_no_threshold_is_better(seed: int) -> None:
    torch.manual_seed(seed)
    y = (torch.rand(80) < 0.3).double()
    y[::7] = math.nan
    p = torch.sigmoid(torch.randn(80) + 1.5 * y.nan_to_num()).double()
    (rule,) = choose_rules(p[:, None], y[:, None])
    best = max(accuracy(p, y, threshold) for threshold in torch.linspace(0, 1, 2001).tolist())
    assert accuracy(p, y, rule.threshold) >= best - 1e-9 or rule.threshold in (
        rule.absent_below,
        rule.present_above,
    )
    assert rule.absent_below <= rule.threshold <= rule.present_above


@pytest.mark.parametrize("steps", [3, 20, 10**6])
@pytest.mark.parametrize("seed", range(4))
def test_the_best_threshold_is_that_of_trying_all(seed: int, steps: int) -> None:
    """The middle one of the best, also where probabilities are equal."""
    random = torch.Generator().manual_seed(seed)
    p = torch.randint(steps, (60,), generator=random).double() / steps
    with_it, without = p[: 20 + seed], p[20 + seed :]
    values = p.unique()
    between = [float(values[0]), *((values[1:] + values[:-1]) / 2).tolist()]
    y = torch.tensor([1.0] * len(with_it) + [0.0] * len(without))
    scores = [round(accuracy(p, y, threshold), 12) for threshold in between]
    best = [threshold for threshold, score in zip(between, scores, strict=True) if score == max(scores)]
    assert _best_threshold(with_it, without) == best[len(best) // 2]


@pytest.mark.parametrize("seed", range(5))
def test_what_is_called_absent_or_present_is_mostly_so(seed: int) -> None:
    torch.manual_seed(seed)
    y = (torch.rand(200) < 0.4).double()
    p = torch.sigmoid(torch.randn(200) + y).double()
    (rule,) = choose_rules(p[:, None], y[:, None])
    verdicts = [rule.verdict(float(one)) for one in p]
    missed = sum(v == "absent" for v, there in zip(verdicts, y, strict=True) if there)
    wrongly = sum(v == "present" for v, there in zip(verdicts, y, strict=True) if not there)
    assert missed <= 0.05 * int(y.sum()) + 1
    assert wrongly <= 0.05 * int((1 - y).sum()) + 1
    assert "uncertain" in verdicts


def test_where_all_are_apart_nothing_is_uncertain() -> None:
    p, y = torch.tensor([[0.1], [0.2], [0.7], [0.9]]), torch.tensor([[0.0], [0.0], [1.0], [1.0]])
    (rule,) = choose_rules(p, y)
    assert rule.absent_below == rule.threshold == rule.present_above
    assert [rule.verdict(float(one)) for one in p[:, 0]] == ["absent", "absent", "present", "present"]


@pytest.mark.parametrize("labels", [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [math.nan] * 3, [1.0, 0.0, 0.0]])
def test_too_few_images_choose_nothing(labels: list[float]) -> None:
    (rule,) = choose_rules(torch.rand(3, 1), torch.tensor(labels)[:, None])
    assert not rule.chosen
    assert rule.threshold == 0.5


def test_they_are_kept_as_plain_values() -> None:
    rules = (FindingRule(0.4, 0.3, 0.6, 5, 9),)
    assert rules_from_json(rules_to_json(rules)) == rules
    assert rules_from_json(rules_to_json(None)) is None
    with pytest.raises(TypeError):
        rules_from_json([{"threshold": 1}])


@pytest.mark.parametrize(
    "change", [{"threshold": 0.2}, {"absent_below": -1.0}, {"present_above": 2.0}, {"present": -1}]
)
def test_rules_that_nobody_chose_are_not_read(change: dict) -> None:
    values = rules_to_json([FindingRule(0.5, 0.4, 0.6, 9, 9)])
    assert values is not None
    assert rules_from_json(values) == (FindingRule(0.5, 0.4, 0.6, 9, 9),)
    with pytest.raises(ValueError, match="rule"):
        rules_from_json([values[0] | change])

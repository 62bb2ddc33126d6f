"""Scores of findings, compared with scikit-learn and with counting."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.metrics.findings import (
    FindingsEvaluation,
    judge_findings,
    weighted_average_precision,
)

NAMES = ["edema", "mass", "nodule"]


@pytest.fixture
def judged():
    torch.manual_seed(0)
    labels = (torch.rand(90, 3) < torch.tensor([0.5, 0.2, 0.1])).double()
    labels[torch.rand(90, 3) < 0.1] = math.nan
    scores = torch.sigmoid(torch.randn(90, 3) + labels.nan_to_num()).double()
    return scores.mul(20).round() / 20, labels  # with ties


def judge(judged, **options) -> FindingsEvaluation:
    return judge_findings(*judged, NAMES, **{"resamples": 60, **options})


def test_scores_are_those_of_known_labels(judged) -> None:
    scores, labels = judged
    found = judge(judged, thresholds=[0.5, 0.6, 0.7])
    for c, one in enumerate(found.findings):
        known = ~labels[:, c].isnan()
        p, y = scores[known, c], labels[known, c]
        assert (one.present, one.absent) == (int(y.sum()), int((1 - y).sum()))
        assert one.auroc.value == pytest.approx(roc_auc_score(y, p))
        assert one.average_precision.value == pytest.approx(average_precision_score(y, p))
        assert one.sensitivity.value == pytest.approx(float((p[y == 1] >= one.threshold).double().mean()))
        assert one.specificity.value == pytest.approx(float((p[y == 0] < one.threshold).double().mean()))
    assert found.mean_auroc.value == pytest.approx(sum(one.auroc.value for one in found.findings) / 3)


def test_steps_count_the_known_images_by_their_probability(judged) -> None:
    scores, labels = judged
    for c, one in enumerate(judge(judged).findings):
        expected = 0.0
        for step in range(10):
            inside = [
                (float(p), float(y))
                for p, y in zip(scores[:, c], labels[:, c], strict=True)
                if not math.isnan(y) and min(int(float(p) * 10), 9) == step
            ]
            assert one.steps.counts[step] == len(inside)
            if inside:
                probability, share = (sum(values) / len(inside) for values in zip(*inside, strict=True))
                assert one.steps.probability[step] == pytest.approx(probability)
                assert one.steps.share[step] == pytest.approx(share)
                expected += abs(probability - share) * len(inside)
        assert sum(one.steps.counts) == one.present + one.absent
        assert one.calibration_error == pytest.approx(expected / (one.present + one.absent))


def test_a_finding_that_is_known_of_no_image_has_empty_steps() -> None:
    labels = torch.tensor([[1.0, math.nan], [0.0, math.nan]])
    found = judge_findings(torch.rand(2, 2), labels, ["edema", "mass"], resamples=20)
    assert sum(found.findings[1].steps.counts) == 0
    assert math.isnan(found.findings[1].calibration_error)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["findings"][0]["steps"]["counts"]


def test_weights_are_copies_of_images() -> None:
    scores, there = torch.rand(12).double(), torch.rand(12) < 0.5
    there[0] = True
    weights = torch.randint(0, 4, (5, 12)).double()
    weights[:, 0] = 1
    found = weighted_average_precision(scores, there, weights)
    for row, value in zip(weights.long(), found, strict=True):
        p, y = scores.repeat_interleave(row), there.repeat_interleave(row)
        assert float(value) == pytest.approx(average_precision_score(y, p))


def test_intervals_hold_the_score_and_grow_with_groups(judged) -> None:
    alone = judge(judged, resamples=300)
    together = judge(judged, resamples=300, groups=[f"p{i // 10}" for i in range(90)])
    assert (alone.groups, together.groups) == (90, 9)
    for one in alone.findings:
        for score in ("auroc", "average_precision", "sensitivity", "specificity"):
            interval = getattr(one, score)
            assert interval.low <= interval.value <= interval.high


def test_a_finding_that_is_never_there_has_no_scores() -> None:
    labels = torch.tensor([[1.0, 0.0], [0.0, 0.0], [1.0, math.nan]])
    found = judge_findings(torch.rand(3, 2), labels, ["edema", "mass"], resamples=20)
    never = found.findings[1]
    assert never.present == 0
    assert all(
        math.isnan(getattr(never, score).value) for score in ("auroc", "average_precision", "sensitivity")
    )
    assert not math.isnan(never.specificity.value)
    assert json.loads(json.dumps(found.to_dict()))["findings"][1]["auroc"]["value"] is None
    assert not math.isnan(found.mean_auroc.value)


def test_a_sure_score_has_the_interval_of_its_patients() -> None:
    labels = torch.tensor([[1.0]] * 20 + [[0.0]] * 20)
    found = judge_findings(labels.clone(), labels, ["edema"], resamples=30).findings[0]
    assert found.sensitivity.high == 1
    assert found.sensitivity.low == pytest.approx(0.025 ** (1 / 20))


def test_a_mean_of_sure_scores_claims_no_certainty() -> None:
    labels = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    found = judge_findings(labels.clone(), labels, ["edema", "mass"], resamples=30)
    for mean in (found.mean_auroc, found.mean_average_precision):
        assert mean.value == 1
        assert math.isnan(mean.low)
        assert math.isnan(mean.high)


def test_table_and_file(judged, tmp_path: Path) -> None:
    found = judge(judged)
    assert found.table().row_count == 4
    found.write_csv(tmp_path / "test.csv")
    rows = list(csv.DictReader((tmp_path / "test.csv").open()))
    assert [row["finding"] for row in rows] == NAMES
    assert float(rows[0]["auroc"]) == pytest.approx(found.findings[0].auroc.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p, y: (p[:, :2], y), "as many probabilities and labels"),
        (lambda p, y: (p[:0], y[:0]), "at least one"),
        (lambda p, y: (p * math.nan, y), "are not finite"),
    ],
)
def test_what_cannot_be_judged_is_refused(judged, change, words: str) -> None:
    with pytest.raises(ProtoPFaithError, match=words):
        judge(change(*judged))


def test_groups_and_thresholds_fit(judged) -> None:
    with pytest.raises(ProtoPFaithError, match="one for each"):
        judge(judged, groups=["a"])
    with pytest.raises(ProtoPFaithError, match="as many thresholds"):
        judge(judged, thresholds=[0.5])

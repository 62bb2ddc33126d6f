from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from protopfaith.evaluation.metrics.calibration import calibration
from protopfaith.evaluation.metrics.findings import judge_findings
from protopfaith.show.reliability import finding_reliability, reliability_figure, share_interval


def test_bars_are_accuracies_and_counts(tmp_path: Path) -> None:
    result = calibration(torch.tensor([[4.0, 0.0], [0.0, 4.0], [1.0, 0.0]]), torch.tensor([0, 1, 1]), 2.0)
    figure = reliability_figure(result)
    above, below = figure.axes
    assert [bar.get_height() for bar in above.patches] == list(result.accuracy)
    assert [bar.get_height() for bar in below.patches] == list(result.counts)
    figure.savefig(tmp_path / "picture.png")


@pytest.mark.parametrize("count", [1, 5, 20])
def test_each_finding_has_a_picture_with_the_shares_of_its_steps(count: int, tmp_path: Path) -> None:
    labels = (torch.rand(60, count) < 0.4).double()
    names = [f"$finding$ {number} of a rather long name" for number in range(count)]
    result = judge_findings(torch.rand(60, count), labels, names, resamples=10)
    figure = finding_reliability(result)
    figure.savefig(tmp_path / "picture.png")
    assert len(figure.axes) == 2 * count
    for one, above, below in zip(result.findings, figure.axes[::2], figure.axes[1::2], strict=True):
        (dots,) = (line for line in above.lines if line.get_marker() == "o")
        shares = [share for share, images in zip(one.steps.share, one.steps.counts, strict=True) if images]
        assert list(dots.get_ydata()) == pytest.approx(shares)
        assert [bar.get_height() for bar in below.patches] == list(one.steps.counts)


def test_pictures_of_findings_do_not_overlap() -> None:
    names = ["a finding of a rather long name", "another finding of a long name", "edema", "mass", "nodule"]
    labels = torch.eye(5).repeat(4, 1)
    labels[:, 4] = math.nan
    figure = finding_reliability(judge_findings(torch.rand(20, 5), labels, names, resamples=10))
    figure.draw_without_rendering()
    boxes = [axes.get_tightbbox() for axes in figure.axes] + [figure.legends[0].get_window_extent()]
    for number, one in enumerate(boxes):
        for other in boxes[number + 1 :]:
            width = min(one.x1, other.x1) - max(one.x0, other.x0)
            height = min(one.y1, other.y1) - max(one.y0, other.y0)
            assert min(width, height) < 2  # pixels, as both round


def test_intervals_of_shares_hold_them_and_shrink_with_images() -> None:
    share = np.array([0.0, 0.3, 1.0])
    few, many = (share_interval(share, np.full(3, float(images))) for images in (5, 500))
    for low, high in (few, many):
        assert np.all((low >= 0) & (low <= share) & (share <= high) & (high <= 1 + 1e-12))
    assert np.all(many[1] - many[0] < few[1] - few[0])

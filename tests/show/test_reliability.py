from __future__ import annotations

from pathlib import Path

import torch

from protopfaith.evaluation.metrics.calibration import calibration
from protopfaith.show.reliability import reliability_figure


def test_bars_are_accuracies_and_counts(tmp_path: Path) -> None:
    result = calibration(torch.tensor([[4.0, 0.0], [0.0, 4.0], [1.0, 0.0]]), torch.tensor([0, 1, 1]), 2.0)
    figure = reliability_figure(result)
    above, below = figure.axes
    assert [bar.get_height() for bar in above.patches] == list(result.accuracy)
    assert [bar.get_height() for bar in below.patches] == list(result.counts)
    figure.savefig(tmp_path / "picture.png")

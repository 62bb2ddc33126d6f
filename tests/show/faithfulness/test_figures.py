from __future__ import annotations

import torch

from protopfaith.evaluation.results import Faithfulness
from protopfaith.show.faithfulness.figures import KINDS, curves_figure, examples_figure, scores_figure


def test_curves_show_every_explainer_and_removal(judgment: Faithfulness) -> None:
    panels = curves_figure(judgment).axes
    assert len(panels) == len(KINDS)
    assert [line.get_label() for line in panels[0].lines] == ["ours", "random", "dasp (n=2)"]


def test_scores_have_a_bar_per_explainer(judgment: Faithfulness) -> None:
    for panel in scores_figure(judgment).axes:
        assert len(panel.patches) == len(judgment.results)


def test_examples_are_bounded() -> None:
    pixels = [torch.randint(0, 256, (channels, 12, 12), dtype=torch.uint8) for channels in (3, 1, 3)]
    maps = {"ours": torch.randn(3, 12, 12), "random": torch.randn(3, 12, 12)}
    assert len(examples_figure(pixels, maps, ["a", "b", "c"], most=2).axes) >= 2 * 3

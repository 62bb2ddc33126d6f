from __future__ import annotations

from typing import Any

import pytest
import torch

from protopfaith.evaluation import judge_findings
from protopfaith.evaluation.external_findings import ExternalFindings
from protopfaith.evaluation.metrics.findings import FindingsEvaluation
from protopfaith.show.external_findings import PANELS, finding_comparison

NAMES = ["edema", "a $very$ long name of a finding that has no room beside", "nowhere"]


def judged(seed: int, images: int) -> FindingsEvaluation:
    generator = torch.Generator().manual_seed(seed)
    truth = (torch.arange(images)[:, None] % torch.tensor([2, 3, images + 1]) == 1).float()
    truth[:, 2] = 0  # without one image that has it, nothing is known of it
    said = (0.3 * truth + 0.7 * torch.rand(images, 3, generator=generator)).clamp(0, 1)
    return judge_findings(said, truth, NAMES, resamples=20)


def compared(internal: FindingsEvaluation | None) -> ExternalFindings:
    return ExternalFindings("clinic_$_$", judged(0, 40), internal, {}, (), (), 20)


def marks(axes: Any) -> list[tuple[float, float, float, float]]:
    """Value, place and ends of the interval of every mark."""
    found = []
    for mark in axes.containers:
        (value,), (place,) = mark.lines[0].get_data()
        (start, _), (end, _) = mark.lines[2][0].get_segments()[0]
        found.append((value, place, start, end))
    return found


@pytest.mark.parametrize("internal", [None, judged(1, 30)])
def test_every_finding_has_its_score_and_interval(internal: FindingsEvaluation | None) -> None:
    result = compared(internal)
    figure = finding_comparison(result)
    sets = [found for found in (result.result, result.internal) if found is not None]
    for axes, score in zip(figure.axes, PANELS, strict=True):
        expected = [
            (one.value, one.low, one.high)
            for found in sets
            for one in (getattr(finding, score) for finding in found.findings[:2])
        ]
        shown = [(value, start, end) for value, _, start, end in marks(axes)]
        assert shown == [pytest.approx(numbers) for numbers in expected]
    figure.canvas.draw()


def test_external_images_lie_above_internal_ones() -> None:
    figure = finding_comparison(compared(judged(1, 30)))
    places = [place for _, place, _, _ in marks(figure.axes[0])]
    assert [round(place) for place in places] == [0, 1, 0, 1]
    assert all(first < second for first, second in zip(places[:2], places[2:], strict=True))
    assert figure.axes[0].yaxis_inverted()


def test_names_are_short_and_no_formulas() -> None:
    figure = finding_comparison(compared(judged(1, 30)))
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels[0] == "edema"
    assert labels[1].startswith("a $very$ long")
    assert labels[1].endswith("…")
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(legend) == len(set(legend)) == 3  # each set once, and what guessing has
    assert "40 images, and 30 of its own" in figure.get_suptitle()
    figure.canvas.draw()  # a formula would fail here

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer, Explanation


def test_the_empty_image_is_told(explainer: Explainer, pixels: torch.Tensor) -> None:
    found = explainer.explain(pixels, players=24, budget=96, sources=False, baseline="color:0.5")
    empty = torch.full((1, 3, 48, 48), 0.5)
    with torch.no_grad():
        expected = (explainer.model(empty)[0].double() / found.temperature).softmax(0)
    assert found.empty_probabilities is not None
    assert torch.allclose(found.empty_probabilities, expected, atol=1e-5)
    assert found.empty_prediction == int(expected.argmax())


def test_probabilities_and_sums_are_calibrated(explainer: Explainer, explanation: Explanation) -> None:
    assert explainer.reference is not None
    assert explanation.temperature == explainer.reference.temperature
    assert explanation.calibrated
    x = explainer.preprocessing(explanation.pixels)  # type: ignore[misc]
    with torch.no_grad():
        logits = explainer.model(x[None])[0].double() / explanation.temperature
    assert torch.allclose(explanation.probabilities, logits.softmax(0), atol=1e-5)
    assert explanation.decomposition.total == pytest.approx(
        float(explanation.probabilities[explanation.target].log()), abs=1e-6
    )


def test_an_image_unlike_all_others_is_unfamiliar(explainer: Explainer, pixels: torch.Tensor) -> None:
    plan = {"players": 24, "budget": 96, "sources": False}
    known = explainer.explain(explainer.images.sets[0].image(0), **plan)  # type: ignore[union-attr,arg-type]
    assert known.usual_distance is not None
    assert known.is_unfamiliar == (known.nearest_distance > known.usual_distance)  # type: ignore[operator]
    close = replace(known, nearest_distance=0.0)
    far = replace(known, nearest_distance=known.usual_distance + 1)
    assert (close.is_unfamiliar, far.is_unfamiliar) == (False, True)


def test_results_are_one_line(explainer: Explainer, explanation: Explanation) -> None:
    shown = [explainer, explainer.sources, explanation, *explanation.evidence, explanation.class_map]
    shown += [explanation.decomposition, explanation.evidence[0].source_side, Path("x")]
    for one in shown:
        assert 0 < len(repr(one)) < 250
        assert "\n" not in repr(one)
        assert "tensor(" not in repr(one)


@pytest.mark.parametrize(
    "odd", [{"most": 0}, {"columns": -1}, {"dpi": 0}, {"dpi": 10**6}, {"dpi": float("nan")}, {"most": "x"}]
)
def test_a_figure_has_a_size(explanation: Explanation, tmp_path: Path, odd: dict[str, object]) -> None:
    with pytest.raises(ProtoPFaithError, match="must be"):
        explanation.figure(tmp_path / "why.png", **odd)
    assert not list(tmp_path.iterdir())


def test_a_figure_goes_where_its_first_argument_says(explanation: Explanation, tmp_path: Path) -> None:
    explanation.figure(tmp_path / "why.svg")
    assert (tmp_path / "why.svg").read_text().rstrip().endswith("</svg>")

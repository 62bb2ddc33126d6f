"""Half precision in games: chosen by the device, never for moments, and told."""

from __future__ import annotations

import pytest
import torch

from protopfaith.devices import choose_autocast
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer, Explanation, Settings, explain
from protopfaith.explanation.report import render_report
from protopfaith.explanation.rounding import rounding, with_autocast

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("asked", "kind"),
    [("auto", None), ("off", None), (None, None), ("bfloat16", torch.bfloat16), (torch.half, torch.half)],
)
def test_the_type_by_its_name(asked: str | torch.dtype | None, kind: torch.dtype | None) -> None:
    assert choose_autocast(asked, CPU) == kind


def test_an_unknown_type_is_one_sentence() -> None:
    with pytest.raises(ProtoPFaithError, match=r"bf16.*use auto, off, bfloat16, float16"):
        choose_autocast("bf16", CPU)


def test_moment_propagation_never_runs_in_half_precision() -> None:
    for estimator, kind in (("default", torch.bfloat16), ("dasp", None), ("moment_path", None)):
        assert with_autocast(Settings(estimator=estimator), "bfloat16", CPU).autocast == kind


def test_rounding_is_the_change_of_the_worst_total() -> None:
    """Totals without autocast are 4 and -2."""

    def function(images: torch.Tensor) -> torch.Tensor:
        return torch.stack([images.sum((1, 2, 3)), -0.5 * images.sum((1, 2, 3))], 1)

    image = torch.ones(1, 2, 2)
    assert rounding(function, image, Settings(), torch.tensor([4.0, -2.0])) == 0
    assert rounding(function, image, Settings(), torch.tensor([4.1, -2.5])) == pytest.approx(0.25)


def test_an_explanation_in_half_precision_says_so(
    explainer: Explainer, explanation: Explanation, pixels: torch.Tensor
) -> None:
    half = explain(explainer, pixels, budget=256, autocast="bfloat16", sources=False)
    assert half.settings["autocast"] == "bfloat16"
    assert 0 < half.settings["rounding"] < 0.1
    assert "computed in bfloat16" in render_report(half)
    assert explanation.settings["autocast"] is None
    assert "bfloat16" not in render_report(explanation)
    # The decision and its distances are those of the network itself.
    assert [one.distance for one in half.evidence] == [one.distance for one in explanation.evidence]
    assert not torch.equal(half.class_map.values, explanation.class_map.values)
    together = torch.stack([half.class_map.values, explanation.class_map.values])
    assert float(torch.corrcoef(together)[0, 1]) > 0.9  # the same coalitions, rounded

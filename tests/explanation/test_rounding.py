"""Half precision in games: chosen by the device, never for moments, and told."""

from __future__ import annotations

import pytest
import torch

from protopfaith.devices import choose_autocast
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer, Explanation, Settings, explain
from protopfaith.explanation.game import distances_and_logit, play
from protopfaith.explanation.settings import with_autocast
from protopfaith.show.report import render_report

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


def test_totals_are_those_without_rounding() -> None:
    """A function that knows whether it is under autocast: its totals without are 4 and -2."""

    def function(images: torch.Tensor) -> torch.Tensor:
        size = images.sum((1, 2, 3)) * (1.25 if torch.is_autocast_enabled("cpu") else 1.0)
        return torch.stack([size, -0.5 * size], 1)

    plan = Settings(players=1, estimator="permutation", budget=14)
    image = torch.ones(1, 2, 2)
    full, half = play(function, image, plan), play(function, image, with_autocast(plan, "bfloat16", CPU))
    assert "rounding" not in full.options
    assert half.options["rounding"] == pytest.approx(0.25)
    assert torch.equal(half.total, full.total)
    assert torch.allclose(half.values, full.values)  # each player had a quarter too much, and gave it back
    assert torch.allclose(half.completeness_gap, torch.tensor([1.0, -0.5]).double())


def test_the_logit_is_summed_in_full_precision(explainer: Explainer) -> None:
    """It is a small difference of large sums."""
    model = explainer.model
    x, row = torch.randn(3, 3, 48, 48), 1000 + torch.randn(len(model.prototypes))
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        found = distances_and_logit(model, None, row)(x)
    assert torch.allclose(found[:, -1], -(found[:, :-1] @ row), rtol=1e-5)


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
    for one, other in zip(half.evidence, explanation.evidence, strict=True):
        assert one.distance == other.distance
        assert one.test.total == pytest.approx(other.test.total, abs=1e-5)
        assert float(one.test.values.sum()) == pytest.approx(one.test.total, abs=1e-6)
    assert not torch.equal(half.class_map.values, explanation.class_map.values)
    together = torch.stack([half.class_map.values, explanation.class_map.values])
    assert float(torch.corrcoef(together)[0, 1]) > 0.9  # the same coalitions, rounded

from __future__ import annotations

from dataclasses import replace

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.explainers import EXPLAINERS
from protopfaith.evaluation.explainers import gradients as gradient_explainers


def test_saliency_vanishes_at_the_source_of_a_prototype(model, image, options) -> None:
    saliency, elsewhere = EXPLAINERS["saliency"](model, image, [0, 2], options).maps
    assert float(saliency.max()) < 1e-3 * float(elsewhere.max())


def test_gradient_shap_adds_no_noise(model, image, options) -> None:
    """On a constant path (the image is its own baseline) there is nothing to share, unless noise is added."""
    still = EXPLAINERS["gradient_shap"](model, image, [2], replace(options, baseline=image))
    assert float(still.maps.abs().max()) == 0


def test_a_missing_captum_is_said(model, image, options, monkeypatch) -> None:
    monkeypatch.setattr(gradient_explainers, "find_spec", lambda name: None)
    with pytest.raises(ProtoPFaithError, match=r"protopfaith\[compare\]"):
        EXPLAINERS["integrated_gradients"](model, image, [0], options)

from __future__ import annotations

import numpy as np
import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.metrics import quantus_metrics
from protopfaith.evaluation.metrics.quantus_metrics import quantus_scores


def test_quantus_scores_what_we_give_it(model, image) -> None:
    pytest.importorskip("quantus")
    images = torch.stack([image, image])
    generator = torch.Generator().manual_seed(0)
    spike, even = torch.zeros(24, 24), torch.rand(24, 24, generator=generator) + 1
    spike[3, 4] = 1
    scores = quantus_scores(model, images, [0, 2], torch.stack([spike, even]))
    assert all(np.shape(values) == (2,) for values in scores.values())
    assert np.isfinite(scores["quantus_faithfulness_correlation"][1])  # a spike is rarely drawn at all
    assert scores["quantus_sparseness"][0] > scores["quantus_sparseness"][1]
    assert scores["quantus_complexity"][0] < scores["quantus_complexity"][1]


def test_a_missing_quantus_is_said(model, image, monkeypatch) -> None:
    monkeypatch.setattr(quantus_metrics, "find_spec", lambda name: None)
    with pytest.raises(ProtoPFaithError, match="pip install quantus"):
        quantus_scores(model, image[None], [0], torch.zeros(1, 24, 24))

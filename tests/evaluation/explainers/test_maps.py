from __future__ import annotations

import torch

from protopfaith.evaluation.explainers import EXPLAINERS


def test_a_crop_is_a_box_of_ones(model, image, options) -> None:
    crop = EXPLAINERS["protopnet_crop"](model, image, [0], options).maps[0]
    rows, columns = crop.any(1), crop.any(0)
    assert set(crop.unique().tolist()) == {0.0, 1.0}
    assert torch.equal(crop.bool(), rows[:, None] & columns)


def test_chance_differs_between_prototypes(model, image, options) -> None:
    first, second = (EXPLAINERS["random"](model, image, [p], options).maps for p in (0, 1))
    assert not torch.equal(first, second)

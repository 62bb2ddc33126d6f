from __future__ import annotations

import torch

from protopfaith.evaluation.bench.curves import RemovalCurves
from protopfaith.evaluation.bench.settings import BenchSettings
from protopfaith.evaluation.explainers import EXPLAINERS


def test_every_kind_of_curve_starts_and_ends_where_it_must(model, image, options) -> None:
    settings = BenchSettings(options, steps=10, truth_budget=0, checked=1, mean_color=(0.1, 0.2, 0.3))
    explained = EXPLAINERS["ours"](model, image, [0, 2], options)
    found = RemovalCurves(model, torch.stack([image, image]), [0, 2], settings).of(explained, [0, 2], options)
    assert set(found) == {"zero", "blur", "mean", "insertion", "own"}
    with torch.no_grad():
        whole = model.distances(image[None])[0, [0, 2]].double().numpy()
        empty = model.distances(torch.zeros_like(image)[None])[0, [0, 2]].double().numpy()
    assert abs(found["zero"][:, 0] - whole).max() < 1e-4
    assert abs(found["zero"][:, -1] - empty).max() < 1e-4
    assert abs(found["insertion"][:, 0] - empty).max() < 1e-4
    assert abs(found["insertion"][:, -1] - whole).max() < 1e-4
    assert all(curves.shape == (2, 11) for curves in found.values())

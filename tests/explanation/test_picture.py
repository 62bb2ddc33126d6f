from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image

from protopfaith.explanation import Explainer, explain
from protopfaith.explanation.picture import to_pil


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "1"])
def test_other_sizes_and_modes_are_converted(explainer: Explainer, pixels: torch.Tensor, mode: str) -> None:
    picture = to_pil(pixels).resize((70, 31)).convert(mode)
    found = explain(explainer, picture, budget=96, sources=False)
    assert found.pixels.shape == (3, 48, 48)
    assert found.original_size == (31, 70)


def test_equal_images_have_equal_explanations(
    explainer: Explainer, pixels: torch.Tensor, tmp_path: Path
) -> None:
    to_pil(pixels).save(tmp_path / "bird.png")
    images = [tmp_path / "bird.png", str(tmp_path / "bird.png"), pixels, explainer.preprocessing(pixels)]  # type: ignore[misc]
    results = [explain(explainer, image, budget=96, sources=False) for image in images]
    for one in results[1:]:
        assert torch.allclose(one.class_map.values, results[0].class_map.values, atol=1e-4)


def test_images_may_be_opened_by_others(explainer: Explainer) -> None:
    found = explain(explainer, Image.new("RGB", (48, 48), "white"), budget=96, sources=False)
    assert found.name == "image"

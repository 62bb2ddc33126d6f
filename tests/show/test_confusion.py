from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from protopfaith.evaluation.metrics.classification import classification
from protopfaith.show.confusion import confusion_figure


def scores(n: int, classes: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (n,), generator=generator)
    logits = torch.randn(n, classes, generator=generator)
    logits[range(n), labels] += 0.7
    return logits, labels


@pytest.mark.parametrize("classes", [2, 8, 30, 200])
def test_picture_is_readable_for_any_number_of_classes(classes, tmp_path):
    logits, labels = scores(400, classes, 0)
    result = classification(logits, labels, [f"class number {c}" for c in range(classes)])
    figure = confusion_figure(result)
    figure.savefig(tmp_path / "confusion.png")
    assert (tmp_path / "confusion.png").stat().st_size > 5000
    axes = figure.axes[0]
    figure.canvas.draw()
    for ticks in (axes.get_xticklabels(), axes.get_yticklabels()):
        boxes = [label.get_window_extent() for label in ticks]
        assert len(boxes) >= min(classes, 20)
        assert not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))
    image = axes.get_images()[0].get_array()
    assert torch.as_tensor(image).sum(1).tolist() == pytest.approx(
        [float(sum(r) > 0) for r in result.confusion]
    )
    numbers = sum(int(text.get_text()) for text in axes.texts)
    assert numbers == (400 if classes <= 20 else 0)

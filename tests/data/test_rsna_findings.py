"""RSNA as one finding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from protopfaith.data import load_data


def test_pneumonia_is_there_or_not(tmp_path: Path, save: Callable[..., Path]) -> None:
    for number in range(40):
        folder = ("normal", "lung_opacity")[number % 2]
        save(tmp_path / "rsna" / folder / f"{number}.png", number)
    classes = load_data("rsna", root=tmp_path / "rsna", size=16)
    data = load_data("rsna_findings", root=tmp_path / "rsna", size=16)
    assert data.classes == ("pneumonia",)
    assert data.splits() == classes.splits()
    for name, images in data.sets().items():
        assert torch.equal(images.labels[:, 0].long(), classes.sets()[name].labels)

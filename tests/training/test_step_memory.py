from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from protopfaith.data import ImageData
from protopfaith.errors import ProtoPFaithError
from protopfaith.training import load_recipe, train
from protopfaith.training.step_memory import encoder_bytes, memory_of


@pytest.mark.parametrize(
    ("change", "limit", "words"),
    [
        ("model.prototype_channels=100000", 10**10, "prototype_channels=100,000 takes 160.0 GB or more"),
        ("optimization.batch_size=8", 10**5, "A training step on 8 images"),
    ],
)
def test_what_memory_does_not_hold_is_told_before_it_is_taken(  # noqa: PLR0917  (fixtures and cases)
    change: str, limit: int, words: str, data: ImageData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROTOPFAITH_MAX_MEMORY", str(limit))
    recipe = load_recipe("birds", ["model.prototype_channels=8", "compute.accelerator=cpu", change])
    with pytest.raises(ProtoPFaithError, match=f"{words}.*PROTOPFAITH_MAX_MEMORY"):
        train(recipe, tmp_path / "run", data=data, progress=False)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("images", [1, 5])
def test_what_is_kept_is_what_backward_needs(images: int) -> None:
    encoder = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(4, 2, 1))
    weights = 4 * (4 * 3 * 9 + 2 * 4)
    kept = encoder_bytes(encoder, (images, 3, 8, 8)) - weights
    assert kept == 4 * images * 64 * (3 + 4)
    assert all(not weight.is_meta for weight in encoder.parameters())


def test_an_encoder_that_needs_numbers_is_not_judged() -> None:
    class Looks(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if bool(x.sum() > 0) else -x

    for encoder in (Looks(), nn.TransformerEncoderLayer(8, 2)):  # how it attends, a device decides
        assert encoder_bytes(encoder, (1, 3, 8, 8)) == 0


def test_this_machine_has_memory() -> None:
    assert memory_of(torch.device("cpu")) > 10**8

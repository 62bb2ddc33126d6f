"""Normalizing, its inverse, and one training size for files and tensors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from protopfaith.data import Preprocessing
from protopfaith.errors import ProtoPFaithError


@pytest.fixture
def preprocessing() -> Preprocessing:
    return Preprocessing((14, 20), 3, (0.4, 0.5, 0.6), (0.2, 0.25, 0.3))


def test_normalizes_by_the_formula(preprocessing: Preprocessing, picture: Callable[..., Image.Image]) -> None:
    image = picture(1)
    expected = (np.asarray(image) / 255 - [0.4, 0.5, 0.6]) / [0.2, 0.25, 0.3]
    assert torch.allclose(preprocessing(image), torch.tensor(expected).permute(2, 0, 1).float(), atol=1e-6)


def test_denormalize_undoes_normalize(preprocessing: Preprocessing) -> None:
    pixels = torch.randint(0, 256, (4, 3, 14, 20), dtype=torch.uint8)
    assert torch.equal(
        (preprocessing.denormalize(preprocessing.normalize(pixels)) * 255).round().byte(), pixels
    )


def test_a_tensor_and_a_picture_agree(picture: Callable[..., Image.Image]) -> None:
    preprocessing = Preprocessing((16, 16))
    image = picture(2, (48, 32))
    tensor = torch.from_numpy(np.array(image)).permute(2, 0, 1)
    difference = preprocessing.uint8(image).int() - preprocessing.uint8(tensor).int()
    assert difference.abs().max() <= 1


def test_resizing_averages_like_a_slow_box(picture: Callable[..., Image.Image]) -> None:
    """Antialiased: a fine checkerboard becomes gray instead of black or white."""
    board = Image.fromarray(((np.indices((64, 64)).sum(0) % 2) * 255).astype(np.uint8))
    small = Preprocessing((16, 16), 1, (0,), (1,)).uint8(board)
    assert small.shape == (1, 16, 16)
    assert (small.int() - 127).abs().max() <= 2


def test_channels_are_made_to_fit(preprocessing: Preprocessing, picture: Callable[..., Image.Image]) -> None:
    gray = picture(3, mode="L")
    assert torch.equal(preprocessing.uint8(gray)[0], preprocessing.uint8(gray)[2])
    assert Preprocessing((14, 20), 1, (0,), (1,))(picture(3)).shape == (1, 14, 20)
    assert preprocessing(torch.zeros(1, 14, 20, dtype=torch.uint8)).shape == (3, 14, 20)


def test_survives_json(preprocessing: Preprocessing) -> None:
    assert Preprocessing.from_dict(json.loads(json.dumps(preprocessing.to_dict()))) == preprocessing


@pytest.mark.parametrize(("channels", "mean"), [(2, (0.5, 0.5)), (3, (0.5,))])
def test_impossible_settings(channels: int, mean: tuple[float, ...]) -> None:
    with pytest.raises(ProtoPFaithError):
        Preprocessing((8, 8), channels, mean, mean)


def test_float_tensors_are_refused(preprocessing: Preprocessing) -> None:
    with pytest.raises(ProtoPFaithError, match="uint8"):
        preprocessing(torch.zeros(3, 14, 20))


@pytest.mark.parametrize("options", [{"bits": 12}, {"bits": "range"}, {"window": (900.0, 600.0)}, {}])
def test_a_picture_of_many_bits_is_scaled_as_its_file(options: dict, tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(500, 1500, (14, 20), dtype=np.uint16)
    preprocessing, path = Preprocessing((14, 20), **options), tmp_path / "scan.png"
    Image.fromarray(values).save(path)
    given = preprocessing.uint8(Image.fromarray(values))
    assert torch.equal(given, preprocessing.uint8(preprocessing.read(path)))


@pytest.mark.parametrize("method", ["normalize", "denormalize"])
@pytest.mark.parametrize("shape", [(5, 5, 5), (2, 4, 8, 8)])
def test_channels_that_there_are_not_are_told(
    preprocessing: Preprocessing, method: str, shape: tuple[int, ...]
) -> None:
    with pytest.raises(ProtoPFaithError, match="x 3 x height x width, not of shape"):
        getattr(preprocessing, method)(torch.zeros(shape))

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
import torch
from PIL import Image

from protopfaith.show.encoding import LARGEST, photo_uri


def opened(uri: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1])))


@pytest.mark.parametrize("channels", [1, 3])
def test_small_images_lose_nothing(channels: int) -> None:
    pixels = torch.randint(0, 256, (channels, 40, 30), dtype=torch.uint8)
    shown = np.asarray(opened(photo_uri(pixels)))
    assert np.array_equal(shown.reshape(40, 30, channels), pixels.permute(1, 2, 0).numpy())


def test_large_images_are_no_larger_than_a_page_needs() -> None:
    ramp = torch.arange(1200).div(5).to(torch.uint8).expand(3, 900, 1200)
    shown = opened(photo_uri(ramp.contiguous()))
    assert max(shown.size) == LARGEST
    assert shown.width / shown.height == pytest.approx(4 / 3, abs=0.01)

"""Images as files that a page or a notebook holds within itself."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image
from torch import Tensor

from protopfaith.explanation.picture import to_pil

LARGEST = 640  # pixels of an image's longer side in a page
LOSSLESS = 256  # pixels up to which nothing is lost; larger ones are photographs that JPEG keeps well


def photo_uri(pixels: Tensor) -> str:
    """An image (uint8, C x H x W), no larger than a page needs."""
    image = to_pil(pixels)
    if max(image.size) > LARGEST:
        image.thumbnail((LARGEST, LARGEST), Image.Resampling.LANCZOS)
    if max(image.size) > LOSSLESS:
        return data_uri(_file(image, "JPEG", quality=92, subsampling=0), "image/jpeg")
    return data_uri(_file(image, "PNG"))


def png(array: np.ndarray) -> bytes:
    """An array in 0..1 (gray, RGB or RGBA) as a PNG file."""
    return _file(Image.fromarray((np.clip(array, 0, 1) * 255).round().astype(np.uint8)), "PNG")


def small_uri(array: np.ndarray) -> str:
    """A small RGB picture in 0..1 among many on one page."""
    image = Image.fromarray((np.clip(array, 0, 1) * 255).round().astype(np.uint8))
    return data_uri(_file(image, "JPEG", quality=85), "image/jpeg")


def data_uri(content: bytes, kind: str = "image/png") -> str:
    """The content of a file as the address of an image."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def _file(image: Image.Image, form: str, **options: int) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()

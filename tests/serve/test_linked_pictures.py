"""Images of pictures are files of the server, each of them once."""

from __future__ import annotations

import io

import numpy as np
import torch
from PIL import Image

from protopfaith.serve.linked_pictures import LinkedPictures

PLACE = "/case/1/image/"


def test_an_image_is_kept_once_however_often_it_is_shown() -> None:
    files: dict[str, bytes] = {}
    torch.manual_seed(0)
    one, other = torch.randint(0, 255, (2, 3, 8, 12), dtype=torch.uint8)
    for _ in range(2):  # maps are drawn anew as they become finer
        pictures = LinkedPictures(place=PLACE, files=files)
        uris = [pictures.plain(pixels, "").image.uri for pixels in (one, one.clone(), other)]
        assert uris[0] == uris[1] != uris[2]
        assert len(pictures.images) == 2
    assert sorted(uris[1:]) == sorted(PLACE + name for name in files)


def test_its_file_is_the_image() -> None:
    files: dict[str, bytes] = {}
    pixels = torch.full((3, 8, 12), 90, dtype=torch.uint8)
    stored = LinkedPictures(place=PLACE, files=files).image(pixels)
    assert (stored.width, stored.height) == (12, 8)
    with Image.open(io.BytesIO(files[stored.uri.removeprefix(PLACE)])) as image:
        assert image.size == (12, 8)
        assert np.abs(np.asarray(image.convert("RGB")).astype(int) - 90).max() <= 3  # may be a JPEG


def test_the_same_bytes_in_another_shape_are_another_image() -> None:
    pictures = LinkedPictures(place=PLACE)
    flat = torch.zeros(3, 4, 9, dtype=torch.uint8)
    assert pictures.image(flat) != pictures.image(flat.reshape(3, 6, 6))


def test_a_smooth_map_covers_its_image_without_a_frame() -> None:
    pixels = torch.zeros(3, 8, 12, dtype=torch.uint8)
    found = LinkedPictures(place=PLACE).smooth(pixels, torch.rand(8, 12), (0.0, 1.0), "a map")
    assert found.image.uri.startswith(PLACE)
    assert found.smooth is not None
    assert found.smooth.box == (0, 0, 12, 8)

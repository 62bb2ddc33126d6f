"""From an image of any size to the tensor a network sees, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from protopfaith.data.images import to_rgb_or_gray, with_channels
from protopfaith.errors import ProtoPFaithError

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Preprocessing:
    """Resize (bilinear, antialiased, aspect not kept, as in the paper), scale to 0..1, subtract `mean`,
    divide by `std`. `bits` and `window` say how files with more than 8 bits are read, see `Scaling`.

    >>> preprocessing = Preprocessing((96, 96), 3, (0.5, 0.5, 0.5), (0.25, 0.25, 0.25))
    >>> preprocessing(Image.new("RGB", (200, 100), "white")).shape
    torch.Size([3, 96, 96])
    """

    size: tuple[int, int]
    channels: int = 3
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD
    bits: int | str | None = None
    window: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        size = (self.size, self.size) if isinstance(self.size, int) else tuple(self.size)
        object.__setattr__(self, "size", tuple(int(side) for side in size))
        object.__setattr__(self, "mean", tuple(float(value) for value in self.mean))
        object.__setattr__(self, "std", tuple(float(value) for value in self.std))
        if self.channels not in (1, 3):
            raise ProtoPFaithError(f"Images have 1 or 3 channels, not {self.channels}; choose one of them.")
        if not len(self.mean) == len(self.std) == self.channels:
            raise ProtoPFaithError(
                f"Preprocessing for {self.channels} channels needs as many means and standard deviations, "
                f"not {len(self.mean)} and {len(self.std)}."
            )

    def uint8(self, image: Image.Image | torch.Tensor) -> torch.Tensor:
        """The image at training size: uint8, C x H x W."""
        if isinstance(image, torch.Tensor):
            return self._uint8_from_tensor(image)
        image = with_channels(to_rgb_or_gray(image), self.channels)
        height, width = self.size
        if image.size != (width, height):
            image = image.resize((width, height), Image.Resampling.BILINEAR)
        pixels = torch.from_numpy(np.array(image))
        return pixels[None] if pixels.ndim == 2 else pixels.permute(2, 0, 1).contiguous()

    def __call__(self, image: Image.Image | torch.Tensor) -> torch.Tensor:
        """A Pillow image or a uint8 tensor (C x H x W) as a normalized float tensor C x H x W."""
        return self.normalize(self.uint8(image))

    def normalize(self, pixels: torch.Tensor) -> torch.Tensor:
        """(pixels / 255 - mean) / std for uint8 of shape (..., C, H, W), on the device of `pixels`."""
        mean, std = self._statistics(pixels.device)
        return (pixels.to(torch.float32) / 255 - mean) / std

    def denormalize(self, images: torch.Tensor) -> torch.Tensor:
        """The inverse of `normalize`: floats in 0..1, clipped, for showing."""
        mean, std = self._statistics(images.device)
        return (images.to(torch.float32) * std + mean).clamp(0, 1)

    def read(self, path: Path | str) -> Image.Image:
        """The image file at `path`, its values scaled as those of the training images; see `Scaling`."""
        from protopfaith.data.scaling import Scaling

        return Scaling(self.bits, self.window).read(path)

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON or YAML."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Preprocessing:
        height, width = values["size"]
        made = cls((height, width), values["channels"], tuple(values["mean"]), tuple(values["std"]))
        window = values.get("window")  # runs of earlier versions have none
        return replace(made, bits=values.get("bits"), window=None if window is None else tuple(window))

    def _statistics(self, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        return _column(self.mean, device), _column(self.std, device)

    def _uint8_from_tensor(self, pixels: torch.Tensor) -> torch.Tensor:
        from torchvision.transforms.v2 import functional as transforms

        if pixels.dtype != torch.uint8:
            raise ProtoPFaithError(
                f"Preprocessing expects uint8 pixels, not {pixels.dtype}; convert the tensor first."
            )
        if pixels.shape[-3] != self.channels:
            to_gray = self.channels == 1
            pixels = transforms.rgb_to_grayscale(pixels) if to_gray else pixels.expand(3, -1, -1)
        if tuple(pixels.shape[-2:]) != self.size:
            pixels = transforms.resize(pixels, list(self.size), antialias=True)
        return pixels


def _column(values: Sequence[float], device: torch.device) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32, device=device)[:, None, None]

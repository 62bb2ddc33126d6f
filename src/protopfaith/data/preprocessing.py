"""From an image of any size to the tensor a network sees, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from protopfaith.arguments import finite_number, instance, shown, tensor, type_name, whole_number
from protopfaith.constants import constant
from protopfaith.data.images import has_numbers, to_rgb_or_gray, with_channels
from protopfaith.errors import ProtoPFaithError
from protopfaith.limits import check_pixels, limit

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Preprocessing:
    """Resize (bilinear, antialiased, aspect not kept, as in the paper), scale to 0..1, subtract `mean`,
    divide by `std`. `bits` and `window` say how files with more than 8 bits are read, see `Scaling`.

    Args:
        size: (height, width) that the network is given
        channels: 1 or 3
        mean: subtracted from each channel
        std: each channel is divided by it
        bits: of files with more than 8 bits, see `Scaling`
        window: (center, width) of DICOM values; see `Scaling`

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
        object.__setattr__(self, "size", checked_size(self.size))
        for name in ("mean", "std"):
            values = instance(getattr(self, name), (tuple, list), f"The {name}", "a list of numbers")
            above = 0.0 if name == "std" else None
            checked = tuple(finite_number(value, f"Every {name}", above=above) for value in values)
            object.__setattr__(self, name, checked)
        if whole_number(self.channels, "The number of channels") not in (1, 3):
            raise ProtoPFaithError(
                f"Images have 1 or 3 channels, not {shown(self.channels)}; choose one of them."
            )
        if not len(self.mean) == len(self.std) == self.channels:
            raise ProtoPFaithError(
                f"Preprocessing for {self.channels} channels needs as many means and standard deviations, "
                f"not {len(self.mean)} and {len(self.std)}."
            )

        if self.bits is not None or self.window is not None:
            from protopfaith.data.scaling import Scaling

            Scaling(self.bits, self.window)  # raises if they make no sense

    def uint8(self, image: Image.Image | torch.Tensor) -> torch.Tensor:
        """The image at training size: uint8, C x H x W.

        Args:
            image: a Pillow image, or a uint8 tensor (C x H x W) of any size
        """
        if isinstance(image, torch.Tensor):
            return self._uint8_from_tensor(image)
        instance(image, Image.Image, "An image", "a Pillow image or a uint8 tensor")
        check_pixels(*image.size, "The image")
        image = with_channels(to_rgb_or_gray(self._scaled(image)), self.channels)
        height, width = self.size
        if image.size != (width, height):
            image = image.resize((width, height), Image.Resampling.BILINEAR)
        pixels = torch.from_numpy(np.array(image))
        return pixels[None] if pixels.ndim == 2 else pixels.permute(2, 0, 1).contiguous()

    def __call__(self, image: Image.Image | torch.Tensor) -> torch.Tensor:
        """A Pillow image or a uint8 tensor (C x H x W) as a normalized float tensor C x H x W."""
        return self.normalize(self.uint8(image))

    def normalize(self, pixels: torch.Tensor) -> torch.Tensor:
        """(pixels / 255 - mean) / std, on the device of the pixels.

        Args:
            pixels: uint8, (..., C, H, W)
        """
        self._check_channels(pixels, "Pixels")
        mean, std = (_column(values, pixels.device) for values in (self.mean, self.std))
        return (pixels.to(torch.float32) / 255 - mean) / std

    def denormalize(self, images: torch.Tensor) -> torch.Tensor:
        """The inverse of `normalize`: floats in 0..1, clipped, for showing.

        Args:
            images: normalized, (..., C, H, W)
        """
        self._check_channels(images, "Images")
        mean, std = (_column(values, images.device) for values in (self.mean, self.std))
        return (images.to(torch.float32) * std + mean).clamp(0, 1)

    def _check_channels(self, given: torch.Tensor, what: str) -> None:
        tensor(given, what, "... x channels x height x width", 3, 4, 5)
        if given.shape[-3] not in (1, self.channels):
            raise ProtoPFaithError(
                f"{what} must be ... x {self.channels} x height x width, not of shape {tuple(given.shape)}."
            )

    def read(self, path: Path | str) -> Image.Image:
        """An image file, its values scaled as those of the training images; see `Scaling`.

        Args:
            path: of the file
        """
        from protopfaith.data.scaling import Scaling

        return Scaling(self.bits, self.window).read(path)

    def _scaled(self, image: Image.Image) -> Image.Image:
        """A picture of more than 8 bits as its file would be read; others stay as they are."""
        from protopfaith.data.scaling import Scaling

        scaling = Scaling(self.bits, self.window)
        if scaling.is_usual or not has_numbers(image):
            return image
        return Image.fromarray(scaling.to_8_bits(np.asarray(image)))

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and numbers, for JSON or YAML."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Preprocessing:
        """The inverse of `to_dict`.

        Args:
            values: size, channels, mean and std; bits and window where there are any
        """
        expected = "a mapping with size, channels, mean and std"
        instance(values, Mapping, "Preprocessing", expected)
        missing = [name for name in ("size", "channels", "mean", "std") if name not in values]
        if missing:
            raise ProtoPFaithError(f"The preprocessing lacks {missing[0]!r}; give {expected}.")
        made = cls(values["size"], values["channels"], values["mean"], values["std"])
        window = values.get("window")  # runs of earlier versions have none
        window = tuple(window) if isinstance(window, list) else window
        return replace(made, bits=values.get("bits"), window=window)

    def _uint8_from_tensor(self, pixels: torch.Tensor) -> torch.Tensor:
        from torchvision.transforms.v2 import functional as transforms

        if pixels.dtype != torch.uint8:
            raise ProtoPFaithError(
                f"Preprocessing expects uint8 pixels, not {type_name(pixels)}; convert the tensor first."
            )
        if pixels.dim() < 3 or pixels.shape[-3] not in (1, 3) or not pixels.numel():
            raise ProtoPFaithError(
                f"Preprocessing expects pixels as 1 or 3 channels x height x width, not a tensor of shape "
                f"{tuple(pixels.shape)}."
            )
        if pixels.shape[-3] != self.channels:
            to_gray = self.channels == 1
            pixels = transforms.rgb_to_grayscale(pixels) if to_gray else pixels.expand(3, -1, -1)
        if tuple(pixels.shape[-2:]) != self.size:
            pixels = transforms.resize(pixels, list(self.size), antialias=True)
        return pixels


def checked_size(size: Any) -> tuple[int, int]:
    """(height, width) from one number or two, neither too small nor too large to be meant.

    >>> checked_size(96), checked_size([48, 64])
    ((96, 96), (48, 64))
    """
    sides = tuple(size) if isinstance(size, (tuple, list)) else (size, size)
    if len(sides) != 2:
        raise ProtoPFaithError(f"A size is one number or (height, width), not {shown(size)}.")
    most = limit("PROTOPFAITH_MAX_SIDE")
    height, width = (whole_number(side, "A side of the images", least=1, most=most) for side in sides)
    return height, width


def _column(values: Sequence[float], device: torch.device) -> torch.Tensor:
    return constant(tuple(values), torch.float32, device)[:, None, None]

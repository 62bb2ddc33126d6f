"""The image to explain: as the network sees it, and as its owner knows it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from protopfaith.arguments import instance, named, not_empty, plain_tensor, tensor, type_name
from protopfaith.data import Preprocessing, read_image
from protopfaith.data.images import say_once, upright
from protopfaith.data.marks import NEGATIVE, marks, read_marks
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import reason
from protopfaith.limits import check_pixels
from protopfaith.network import PrototypeNetwork
from protopfaith.shapley.players import as_tensor

ImageLike = str | Path | Image.Image | Tensor | np.ndarray
MaskLike = str | Path | Image.Image | Tensor | np.ndarray
CHANNELS = (1, 3, 4)  # gray, colors, and colors with transparency
BEYOND_WHITE = 4.0  # times white: what no normalized photograph has
BEYOND_NOISE = 8.0  # standard deviations


@dataclass(frozen=True, eq=False)
class Picture:
    """The image to explain.

    Args:
        name: for people
        input: what the network reads: C x H x W, normalized, on its device
        pixels: the same for the eye: uint8
        original: before it was resized
        path: as it was given, if from the working folder, or else its name; empty for no file
    """

    name: str
    input: Tensor
    pixels: Tensor
    original: Image.Image
    path: str = ""

    @property
    def original_size(self) -> tuple[int, int]:
        """Height and width."""
        return self.original.height, self.original.width

    @property
    def sha256(self) -> str:
        """Of the pixels that the network reads."""
        return hashlib.sha256(self.input.cpu().contiguous().numpy().tobytes()).hexdigest()

    def __repr__(self) -> str:
        return f"Picture({self.name!r}, {' x '.join(map(str, self.input.shape))})"


def open_picture(
    image: ImageLike, preprocessing: Preprocessing | None, model: PrototypeNetwork, name: str = ""
) -> Picture:
    """Reads an image of any kind.

    Args:
        image: a path, a Pillow image, a uint8 tensor (C x H x W) or array (H x W x C) of any size, a float
            tensor with values in 0..1, or a normalized float tensor, which is taken as it is
        preprocessing: how other sizes and modes are converted
        model: whose input it becomes
        name: for people; the file's by default
    """
    instance(name, str, "The name of an image", "text")
    if isinstance(image, np.ndarray):
        image = from_array(image)
    if isinstance(image, Tensor) and image.is_floating_point():
        return _from_float(_one_image(image), preprocessing, model, name or "image")
    read = read_image if preprocessing is None else preprocessing.read
    found, name, path = open_pixels(image, name, read)
    preprocessing = require_preprocessing(preprocessing)
    pixels = preprocessing.uint8(found)
    normalized = preprocessing.normalize(pixels).to(model.prototypes.device)
    return Picture(name, normalized, pixels, found, path)


def open_pixels(
    image: ImageLike, name: str = "", read: Callable[[Path | str], Image.Image] = read_image
) -> tuple[Image.Image, str, str]:
    """An image that is no network's input yet, what it is called, and its path if that may be told.

    Args:
        image: a path, a Pillow image or a uint8 tensor
        name: for people; the file's by default
        read: opens a file
    """
    if isinstance(image, str | Path):
        not_empty(image, "The image")
        return read(image), name or named(Path(image).name), _within(Path(image))
    if isinstance(image, Tensor):
        image = _one_image(image)
        if image.dim() != 3 or image.dtype != torch.uint8 or len(image) not in CHANNELS or not image.numel():
            raise ProtoPFaithError(
                "An image to explain is C x height x width of type uint8, with 1, 3 or 4 channels, or a "
                f"normalized float, not {type_name(image)} of shape {tuple(image.shape)}; convert it."
            )
        image = to_pil(image)
    if not isinstance(image, Image.Image):
        raise ProtoPFaithError(
            f"An image to explain is a path, a Pillow image or a tensor, not {type(image).__name__}; "
            "convert it."
        )
    return upright(_loaded(image)), name or "image", ""


def _loaded(image: Image.Image) -> Image.Image:
    """With its pixels: Pillow reads them only now, and the file may be cut or closed."""
    try:
        image.load()
    except Exception as error:  # whatever a damaged file leads Pillow into
        raise ProtoPFaithError(
            f"The pixels of a Pillow image cannot be read ({reason(error)}); open its file again, or give "
            "another copy of it."
        ) from error
    return image


def _one_image(image: Tensor) -> Tensor:
    """C x H x W, also from a batch of one."""
    plain_tensor(image, "An image to explain", "a tensor of C x height x width")
    if image.dim() in (3, 4):
        check_pixels(image.shape[-1], image.shape[-2], "An image to explain")
    return image[0] if image.dim() == 4 and len(image) == 1 else image


def _within(path: Path) -> str:
    """The path if it says nothing of the machine that it is on, or else the file's name.

    >>> _within(Path("birds/7.png")), _within(Path("/home/me/7.png")), _within(Path("../secret/7.png"))
    ('birds/7.png', '7.png', '7.png')
    """
    return path.name if path.is_absolute() or ".." in path.parts or path.parts[:1] == ("~",) else str(path)


def from_array(image: np.ndarray) -> Image.Image | Tensor:
    """Arrays are H x W x C, as Pillow and OpenCV have them, or C x H x W."""
    if image.dtype == np.uint8 and (image.ndim == 2 or (image.ndim == 3 and image.shape[-1] in (3, 4))):
        return Image.fromarray(image)
    found = as_tensor(image, "An image to explain", "an array of height x width x C or C x height x width")
    channels_last = found.dim() == 3 and found.shape[-1] in (1, 3) and found.shape[0] not in (1, 3)
    return found.permute(2, 0, 1) if channels_last else found


def open_mask(mask: MaskLike, size: Sequence[int], original: Sequence[int] | None = None) -> Tensor:
    """Where the object is, as the network sees it: bool, H x W.

    Args:
        mask: an image file, a Pillow image, a tensor or an array (H x W); the object is where it is neither
            zero nor transparent. Its shape is that of the image, or of what the network sees.
        size: height and width of what the network sees.
        original: height and width of the image; where it is given, the mask must have the proportions of it,
            or of what the network sees.

    >>> open_mask(torch.eye(2), (4, 4)).int().tolist()
    [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]]
    """
    if isinstance(mask, str | Path):
        return _open_mask_file(mask, size, original)
    if isinstance(mask, Image.Image):
        mask = marks(mask)
    if isinstance(mask, np.ndarray):
        mask = as_tensor(mask, "A mask", "height x width")
    given: Tensor = tensor(mask, "A mask", "height x width", 2)
    if not given.numel() or bool(given.isnan().any()):
        raise ProtoPFaithError("A mask has a number for each pixel; this one has no pixels, or NaN.")
    if bool((given < 0).any()):
        raise ProtoPFaithError(NEGATIVE)
    if original is not None:
        _check_proportions(tuple(given.shape), tuple(original), tuple(size))
    there = (given != 0).float()[None, None]
    found = torch.nn.functional.interpolate(there, tuple(size), mode="nearest-exact")[0, 0] > 0
    if not bool(found.any()):  # an object smaller than a pixel of what the network sees
        found = torch.nn.functional.adaptive_max_pool2d(there, tuple(size))[0, 0] > 0
    if not bool(found.any()):
        raise ProtoPFaithError("The mask is empty: it is zero everywhere; mark the object in it.")
    return found.cpu()


def _open_mask_file(path: str | Path, size: Sequence[int], original: Sequence[int] | None) -> Tensor:
    """The same of a file, which is named where something is wrong with it."""
    not_empty(path, "The mask")
    try:
        return open_mask(read_marks(path), size, original)
    except ProtoPFaithError as error:
        if named(path) in str(error):
            raise
        raise ProtoPFaithError(f"The mask {named(path)} cannot be used. {error}") from error


def _check_proportions(mask: tuple[int, ...], *known: tuple[int, ...]) -> None:
    """Raises if a mask lies on no picture of the image: stretched, it would mark something else."""
    for height, width in known:
        across, down = mask[1] / width, mask[0] / height
        if abs(mask[1] - down * width) <= max(1, down) or abs(mask[0] - across * height) <= max(1, across):
            return
    height, width = known[0]
    raise ProtoPFaithError(
        f"The mask has {mask[1]} x {mask[0]} pixels and the image {width} x {height}; give one of the same "
        "proportions."
    )


def to_pil(pixels: Tensor) -> Image.Image:
    """uint8, C x H x W with 1, 3 or 4 channels."""
    array = pixels.detach().cpu().numpy()
    return Image.fromarray(array[0] if len(array) == 1 else np.ascontiguousarray(array.transpose(1, 2, 0)))


def _from_float(
    image: Tensor, preprocessing: Preprocessing | None, model: PrototypeNetwork, name: str
) -> Picture:
    """A float tensor: the network's input as it is, or pixel values in 0..1, which are normalized first."""
    fits = image.dim() == 3 and len(image) in (1, model.in_channels)
    if fits and preprocessing is not None and _has_pixel_values(image, preprocessing):
        say_once(
            "A float tensor with all values in 0..1 is taken for an image that is not normalized yet; give "
            "normalized tensors, or uint8, to be sure."
        )
        size = list(preprocessing.size)
        if list(image.shape[-2:]) != size:
            batch = image[None].float()
            image = torch.nn.functional.interpolate(batch, size, mode="bilinear", antialias=True)[0]
        if len(image) == 1 and preprocessing.channels == 3:
            image = image.expand(3, -1, -1)
        image = preprocessing.normalize(image.float().clamp(0, 1) * 255)
    elif fits and preprocessing is not None and _is_out_of_range(image, preprocessing):
        raise ProtoPFaithError(
            f"A float tensor with values from {float(image.min()):.4g} to {float(image.max()):.4g} is "
            "neither in 0..1 nor normalized as the network takes it; convert it to uint8, or normalize it."
        )
    elif preprocessing is None:
        say_once("A float tensor is taken as the network's input, normalized as in its training.")
    return _from_input(image, preprocessing, model, name)


def _has_pixel_values(image: Tensor, preprocessing: Preprocessing) -> bool:
    """Whether a tensor cannot be the output of this preprocessing, or hardly: that has values around zero."""
    pixels = image.detach()
    low, high = float(pixels.min()), float(pixels.max())
    normalizes = any(mean > 0 for mean in preprocessing.mean)
    return normalizes and low >= 0 and high <= 1 and high > low


def _is_out_of_range(image: Tensor, preprocessing: Preprocessing) -> bool:
    """Whether nothing is dark and something far brighter than white, as pixel values up to 255, or anything
    is so far from all that lies between black and white that not even noise is: Hounsfield units."""
    pairs = list(zip(preprocessing.mean, preprocessing.std, strict=True))
    white, black = max((1 - mean) / std for mean, std in pairs), min(-mean / std for mean, std in pairs)
    low, high = float(image.detach().min()), float(image.detach().max())
    far = max(BEYOND_WHITE * (white - black), BEYOND_NOISE)
    return (low >= 0 and high > BEYOND_WHITE * white) or max(high, -low) > far


def _from_input(
    image: Tensor, preprocessing: Preprocessing | None, model: PrototypeNetwork, name: str
) -> Picture:
    if image.dim() != 3 or len(image) != model.in_channels or not image.numel():
        raise ProtoPFaithError(
            f"A float tensor is taken as the network's input, {model.in_channels} x height x width, but "
            f"its shape is {tuple(image.shape)}; convert it, or give the image as uint8."
        )
    if preprocessing is not None:
        shown = preprocessing.denormalize(image)
    else:  # for the eye alone: the range of the image itself
        low, high = image.amin(), image.amax()
        shown = (image - low) / (high - low).clamp_min(1e-12)
    if len(shown) not in CHANNELS:  # no colors: what all channels have in common
        shown = shown.mean(0, keepdim=True)
    pixels = (shown * 255).round().to(torch.uint8).cpu()
    return Picture(name, image.detach().float().to(model.prototypes.device), pixels, to_pil(pixels))


def require_preprocessing(preprocessing: Preprocessing | None) -> Preprocessing:
    """The preprocessing, or an error where there is none."""
    if preprocessing is None:
        raise ProtoPFaithError(
            "A network alone does not say how images are prepared for it; give a run folder, "
            "preprocessing=..., or a normalized float tensor."
        )
    return preprocessing

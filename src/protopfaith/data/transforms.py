"""Random affine transforms, flips and colors: image by image on the CPU, or a whole batch on any device.

Both draw from the same distribution, that of torchvision's `RandomAffine`, `RandomHorizontalFlip` and
`ColorJitter` (brightness, then contrast, then saturation): angle, horizontal shear, scale, translation (in
whole pixels) and color factors are uniform and independent for each image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from protopfaith.annotations import check_arguments
from protopfaith.arguments import instance, tensor
from protopfaith.augmentation import Augmentation, Padding
from protopfaith.constants import constant

if TYPE_CHECKING:
    from torchvision.transforms import v2  # itself imported where it is used: that takes as long as torch

# What torchvision calls the padding that grid_sample calls so.
PAD_MODES = {"border": "edge", "reflection": "symmetric"}


def cpu_transform(augmentation: Augmentation, size: tuple[int, int]) -> v2.Compose:
    """The augmentation as a torchvision transform for single images of `size` (height, width).

    With `padding="zeros"` it also moves `tv_tensors.BoundingBoxes`; for the rest, and for points, there
    are `warp_boxes` and `warp_points`. Random numbers come from torch's global generator.
    """
    from torchvision.transforms import v2

    height, width = size
    padded = augmentation.padding in PAD_MODES
    # On an image padded to twice its size a fraction covers twice the pixels.
    translation = augmentation.translation / (2 if padded else 1)
    affine = v2.RandomAffine(
        augmentation.rotation,
        translate=(translation, translation),
        scale=augmentation.scale,
        shear=augmentation.shear,
        interpolation=v2.InterpolationMode.BILINEAR,
    )
    steps: list[torch.nn.Module] = [affine]
    if padded:
        pad = v2.Pad([width // 2, height // 2], padding_mode=PAD_MODES[augmentation.padding])
        steps = [pad, affine, v2.CenterCrop([height, width])]
    steps.append(v2.RandomHorizontalFlip(augmentation.flip))
    if augmentation.size is not None:
        steps.append(v2.Resize(list(augmentation.size), antialias=False))
    if augmentation.color:
        kinds = ("brightness", "contrast", "saturation")  # one by one: together their order is random
        steps += [v2.ColorJitter(**{kind: augmentation.color}) for kind in kinds]
    return v2.Compose(steps)


def augment(pixels: Tensor, augmentation: Augmentation, generator: torch.Generator) -> Tensor:
    """A batch (N x C x H x W, uint8 or float) with its own random transform for each image, as float32 in the
    same range. On a GPU this takes no loop and no copy to the CPU; the generator may be on either.

    Args:
        pixels: uint8 images, B x C x H x W, on any device
        augmentation: what may happen to them
        generator: of that device; it decides everything

    >>> pixels = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
    >>> augment(pixels, Augmentation(flip=0.5), torch.Generator().manual_seed(0)).shape
    torch.Size([2, 3, 8, 8])
    """
    check_arguments(augment, locals())
    tensor(pixels, "Images to augment", "N x C x height x width", 4)
    instance(augmentation, Augmentation, "What may happen to images", "an Augmentation")
    if not pixels.numel() or augmentation == Augmentation(
        padding=augmentation.padding, hide=augmentation.hide
    ):
        return pixels.to(torch.float32)
    height, width = pixels.shape[-2:]
    matrices = random_matrices(augmentation, len(pixels), (height, width), generator)
    matrices = matrices.to(pixels.device, non_blocking=True)
    images = warp(pixels, matrices, augmentation.padding, size=augmentation.size)
    return jitter(images, augmentation.color, generator) if augmentation.color else images


def random_matrices(
    augmentation: Augmentation, count: int, size: tuple[int, int], generator: torch.Generator
) -> Tensor:
    """`count` x 2 x 3: where the point (x, y), in pixels from the upper left corner, goes.

    With R the rotation, K the shear and s the scale: q = F(s R K (p - c) + t) + c, c the image's center, t
    the translation, F the flip.
    """
    height, width = size

    def uniform(low: float, high: float) -> Tensor:
        values = torch.rand(count, generator=generator, device=generator.device, dtype=torch.float64)
        return low + (high - low) * values

    angle = torch.deg2rad(uniform(-augmentation.rotation, augmentation.rotation))
    slope = torch.tan(torch.deg2rad(uniform(-augmentation.shear, augmentation.shear)))
    scale = uniform(*augmentation.scale)
    right = torch.round(uniform(-1, 1) * augmentation.translation * width)
    down = torch.round(uniform(-1, 1) * augmentation.translation * height)
    mirror = torch.where(uniform(0, 1) < augmentation.flip, -1.0, 1.0)
    cosine, sine = scale * torch.cos(angle), scale * torch.sin(angle)
    linear = torch.stack(
        [
            torch.stack([mirror * cosine, mirror * (-sine - cosine * slope)], 1),
            torch.stack([sine, cosine - sine * slope], 1),
        ],
        1,
    )
    center = constant((width / 2, height / 2), torch.float64, generator.device)
    shift = torch.stack([mirror * right, down], 1) + center - linear @ center
    return torch.cat([linear, shift[..., None]], 2).to(torch.float32)


def jitter(images: Tensor, color: float, generator: torch.Generator) -> Tensor:
    """Images (N x C x H x W, 0 to 255) with brightness, contrast and saturation of each changed by factors
    between 1 - `color` and 1 + `color`."""

    def blend(other: Tensor | float) -> Tensor:
        factor = torch.rand(len(images), 1, 1, 1, generator=generator, device=generator.device)
        factor = (1 + color * (2 * factor - 1)).to(images.device, non_blocking=True)
        return (other + factor * (images - other)).clamp(0, 255)

    images = blend(0.0)
    images = blend(_gray(images).mean((2, 3), keepdim=True))
    return blend(_gray(images)) if images.shape[1] == 3 else images


def _gray(images: Tensor) -> Tensor:
    """Luma, as torchvision has it."""
    if images.shape[1] != 3:
        return images
    luma = constant((0.2989, 0.587, 0.114), images.dtype, images.device)
    return torch.einsum("nchw,c->nhw", images, luma)[:, None]


def warp(
    images: Tensor,
    matrices: Tensor,
    padding: Padding = "zeros",
    size: tuple[int, int] | None = None,
) -> Tensor:
    """Moves the content of each image (N x C x H x W) by its matrix. The result is sampled at `size`,
    that of the images by default."""
    height, width = images.shape[-2:]
    half = constant((width / 2, height / 2), torch.float32, matrices.device)
    inverse = torch.linalg.inv_ex(matrices[:, :, :2]).inverse  # inv itself would wait for the GPU
    # affine_grid asks where an output point comes from, in coordinates that run from -1 to 1.
    origin = torch.einsum("nij,nj->ni", inverse, half - matrices[:, :, 2]) - half
    theta = torch.cat([inverse * (half[None, None, :] / half[None, :, None]), (origin / half)[..., None]], 2)
    shape = [*images.shape[:2], *(size or images.shape[-2:])]
    grid = functional.affine_grid(theta, shape, align_corners=False)
    return functional.grid_sample(
        images.to(torch.float32), grid, mode="bilinear", padding_mode=padding, align_corners=False
    )


def warp_points(points: Tensor, matrices: Tensor) -> Tensor:
    """Part locations (N x n x 2, (x, y) pixels) after the same transform."""
    return points @ matrices[:, :, :2].transpose(1, 2) + matrices[:, None, :, 2]


def warp_boxes(boxes: Tensor, matrices: Tensor) -> Tensor:
    """The upright boxes (N x n x 4: left, top, right, bottom) around the transformed boxes."""
    corners = boxes[..., [0, 1, 2, 1, 2, 3, 0, 3]].reshape(len(boxes), -1, 2)
    moved = warp_points(corners, matrices).reshape(*boxes.shape[:2], 4, 2)
    return torch.cat([moved.amin(2), moved.amax(2)], -1)

"""What one step of training takes at least, compared with the memory there is, before any of it is taken.

Counted is less than what training takes: weights with what AdamW keeps of each, before there is a network;
then what the encoder keeps of one batch for its gradients, measured without memory on torch's device meta.
"""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from protopfaith.data import ImageData
from protopfaith.errors import ProtoPFaithError
from protopfaith.limits import memory_limit
from protopfaith.network import PatchNetwork
from protopfaith.training.recipe import Recipe

KEPT = 16  # bytes of a trained weight: itself, its gradient and two moments, in float32
OURS = ("protopnet", "prototree")  # families whose Z is known from the recipe alone
CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def check_weights(recipe: Recipe) -> None:
    """Raises if the weights of Z alone are more than the memory of this machine holds.

    Args:
        recipe: whose network is not built yet
    """
    model = recipe.model
    if model.family in OURS and "layers" not in model.options:
        _check(
            KEPT * model.prototype_channels**2,
            torch.device("cpu"),
            f"A network with model.prototype_channels={model.prototype_channels:,}",
            "model.prototype_channels",
        )


def check_step(
    model: PatchNetwork, recipe: Recipe, data: ImageData, device: torch.device, ranks: int
) -> None:
    """Raises if what the encoder keeps of a batch is more than the device holds.

    Args:
        model: the network
        recipe: has the batch size and the size of augmented images
        data: has the size of the others
        device: that is trained on
        ranks: how many devices share a batch
    """
    height, width = recipe.augmentation.size or data.preprocessing.size
    images = min(recipe.optimization.batch_size, len(data.train)) // ranks
    kept = encoder_bytes(model.encoder, (images, data.preprocessing.channels, height, width))
    # A compiled encoder may keep less, one that never learns nothing, and half of it is kept in 16 bits.
    unknown = recipe.compute.compile or not recipe.optimization.multipliers.encoder
    share = 0.0 if unknown else 1.0 if recipe.compute.precision == "32-true" else 0.5
    what = f"A training step on {images} images of {height}x{width} pixels"
    _check(int(share * kept), device, what, "data.size, augmentation.size or optimization.batch_size")


def encoder_bytes(encoder: nn.Module, shape: tuple[int, ...]) -> int:
    """What an encoder keeps of a batch for its gradients; 0 where it cannot be told without computing.

    Args:
        encoder: stays as it is
        shape: of the batch

    >>> encoder_bytes(nn.Conv2d(3, 1, 1), (2, 3, 4, 4))  # the images and three weights
    396
    """
    if any("Attention" in type(part).__name__ for part in encoder.modules()):
        return 0  # how much of it is kept depends on the device
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage()._cdata] = tensor
        return tensor

    try:
        there_is_none: Any = copy.deepcopy(encoder).to("meta").eval()
        images = torch.zeros(shape, device="meta")
        with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            there_is_none(images)
    except Exception:  # an encoder of somebody else that needs numbers to compute with
        return 0
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


def memory_of(device: torch.device) -> int:
    """Bytes of memory that a device has; on a CPU, what this process may take.

    >>> memory_of(torch.device("cpu")) > 0
    True
    """
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    try:
        bounds = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, ValueError, OSError):  # no such system
        return 1 << 62
    for path in CGROUPS:
        try:
            bounds.append(int(Path(path).read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return min(bounds)


def _check(needed: int, device: torch.device, what: str, key: str) -> None:
    most = memory_limit(memory_of(device))
    if needed > most:
        raise ProtoPFaithError(
            f"{what} takes {needed / 1e9:,.1f} GB or more, and there are {most / 1e9:,.1f} GB; choose a "
            f"smaller {key}, or raise the limit by the environment variable PROTOPFAITH_MAX_MEMORY (bytes)."
        )

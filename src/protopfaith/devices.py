"""From a word such as auto, cpu or cuda:1 to the device to compute on."""

from __future__ import annotations

import torch

from protopfaith.arguments import shown
from protopfaith.errors import ProtoPFaithError, is_out_of_memory
from protopfaith.specs import check_autocast


def choose_device(name: str | torch.device = "auto") -> torch.device:
    """A device that this machine has and can compute on.

    Args:
        name: `auto` (a GPU where there is one), or anything that `torch.device` takes

    >>> choose_device("cpu")
    device(type='cpu')
    """
    if not isinstance(name, (str, int, torch.device)) or isinstance(name, bool):
        raise ProtoPFaithError(f"A device is a name such as auto, cpu or cuda:1, not {shown(name)}.")
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        if device.type == "meta" or (device.type == "cpu" and device.index):
            raise RuntimeError("it computes nothing")
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError, TypeError, ValueError, ImportError) as error:
        raise ProtoPFaithError(
            f"The device {shown(str(name))} is not available on this machine; use auto, or cpu."
        ) from error
    return device


class DeviceError(ProtoPFaithError):
    """After some errors a GPU does nothing more for the process that made them."""


def has_failed(device: torch.device) -> bool:
    """Whether a device fails at the least of all tasks.

    >>> has_failed(torch.device("cpu"))
    False
    """
    if device.type != "cuda":
        return False
    try:
        torch.zeros(1, device=device).add(1).item()
    except RuntimeError as error:
        return not is_out_of_memory(error)
    return False


def as_device(name: str | torch.device) -> torch.device:
    """What `torch.device` makes of a name, whether or not this machine has it.

    >>> as_device("cuda:1")
    device(type='cuda', index=1)
    """
    try:
        if isinstance(name, bool):
            raise TypeError
        return torch.device(name)
    except (RuntimeError, TypeError, ValueError):
        raise ProtoPFaithError(f"There is no device {shown(name)}; give cpu, cuda, cuda:1, ...") from None


def choose_autocast(name: str | torch.dtype | None, device: torch.device) -> torch.dtype | None:
    """The type for `torch.autocast`: `auto` (bfloat16 on a GPU that computes in it, none elsewhere),
    `off` or None (the network as it is), `bfloat16`, `float16`, or a dtype.

    >>> choose_autocast("auto", torch.device("cpu")) is None, choose_autocast("bfloat16", torch.device("cpu"))
    (True, torch.bfloat16)
    """
    if name is None or isinstance(name, torch.dtype):
        return name
    if isinstance(name, str) and name == "auto":
        able = device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)
        return torch.bfloat16 if able else None
    check_autocast(name)
    return None if name == "off" else torch.bfloat16 if name == "bfloat16" else torch.float16

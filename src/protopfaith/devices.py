"""Where to compute, from a word."""

from __future__ import annotations

import torch

from protopfaith.errors import ProtoPFaithError


def choose_device(name: str = "auto") -> torch.device:
    """``auto`` (a GPU where there is one), or anything that ``torch.device`` takes and this machine has."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ProtoPFaithError(
            f"The device {name!r} is not available on this machine; use auto, or cpu."
        ) from error
    return device

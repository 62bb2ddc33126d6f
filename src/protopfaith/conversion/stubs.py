"""Networks that were read without their classes: which parts and which tensors they have."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from protopfaith.conversion.unpickling import Stub


def module_state(module: Stub, prefix: str = "") -> dict[str, Tensor]:
    """The state dict of a module that is a stub: its parameters and buffers, and those of its parts.

    >>> import torch
    >>> from protopfaith.conversion.unpickling import stub_class
    >>> module = stub_class("torch.nn", "Linear").__new__(stub_class("torch.nn", "Linear"))
    >>> module.__setstate__({"_parameters": {"weight": torch.zeros(1), "bias": None}})
    >>> list(module_state(module, "last_layer."))
    ['last_layer.weight']
    """
    found: dict[str, Tensor] = {}
    values = vars(module)
    for kind in ("_parameters", "_buffers"):
        entries = values.get(kind)
        for name, tensor in entries.items() if isinstance(entries, dict) else ():
            if isinstance(tensor, Tensor):
                found[f"{prefix}{name}"] = tensor
    for name, part in parts_of(module).items():
        found |= module_state(part, f"{prefix}{name}.")
    return found


def parts_of(module: Any) -> dict[str, Stub]:
    """The modules inside a module that is a stub."""
    entries = vars(module).get("_modules") if isinstance(module, Stub) else None
    if not isinstance(entries, dict):
        return {}
    return {str(name): part for name, part in entries.items() if isinstance(part, Stub)}


def state_with(content: Any, name: str) -> dict[str, Tensor] | None:
    """The tensors that stand beside the one of that name, in a dictionary of dictionaries, whatever their
    names begin with: `module.` of nn.DataParallel, `_orig_mod.` of torch.compile, the name of an attribute.

    Args:
        content: what a file holds
        name: of one tensor

    >>> import torch
    >>> state_with({"epoch": 3, "state_dict": {"module.x": torch.zeros(1), "loss.w": torch.ones(1)}}, "x")
    {'x': tensor([0.])}
    """
    if not isinstance(content, dict):
        return None
    tensors = {str(key): value for key, value in content.items() if isinstance(value, Tensor)}
    starts = [key.removesuffix(name) for key in tensors if key == name or key.endswith(f".{name}")]
    if starts:
        start = min(starts, key=len)
        return {key.removeprefix(start): tensors[key] for key in tensors if key.startswith(start)}
    inside = (state_with(value, name) for value in content.values())
    return next((found for found in inside if found is not None), None)

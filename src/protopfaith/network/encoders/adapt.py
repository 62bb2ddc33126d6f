"""Fitting existing weights to an encoder: another number of input channels, files of weights."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from protopfaith.encoder_names import check_weights_file
from protopfaith.errors import ProtoPFaithError

HEADS = ("fc", "classifier", "head", "heads", "last_linear", "AuxLogits", "aux1", "aux2")
"""What classification networks call the layers after the feature map."""


class Wrapped(nn.Module):
    """A library's network inside an encoder: files of weights are meant for `network`."""

    def __init__(self, network: nn.Module):
        super().__init__()
        self.network = network


def fold_channels(weight: Tensor, in_channels: int) -> Tensor:
    """A first convolution's weight (out, 3, k, k) for another number n of input channels: its sum over
    channels, divided by n, for each of them.

    A gray image copied into n channels then gives what the same image gave in red, green and blue; for n = 1
    it is the plain sum.
    """
    if weight.shape[1] == in_channels:
        return weight
    return (weight.sum(1, keepdim=True) / in_channels).repeat(1, in_channels, 1, 1)


def set_in_channels(encoder: nn.Module, in_channels: int) -> None:
    """Replaces the first convolution of `encoder`, in place, by one that takes `in_channels` channels."""
    name, first = first_convolution(encoder)
    if first.in_channels == in_channels:
        return
    if first.groups != 1:
        raise ProtoPFaithError(
            f"The first convolution of {type(encoder).__name__} has {first.groups} groups, so it cannot take "
            f"{in_channels} channels instead of {first.in_channels}: use another encoder."
        )
    replacement = nn.Conv2d(
        in_channels,
        first.out_channels,
        kernel_size=first.kernel_size,  # type: ignore[arg-type]
        stride=first.stride,  # type: ignore[arg-type]
        padding=first.padding,  # type: ignore[arg-type]
        dilation=first.dilation,  # type: ignore[arg-type]
        bias=first.bias is not None,
        padding_mode=first.padding_mode,
    )
    with torch.no_grad():
        replacement.weight.copy_(fold_channels(first.weight, in_channels))
        if first.bias is not None and replacement.bias is not None:
            replacement.bias.copy_(first.bias)
    parent, _, child = name.rpartition(".")
    setattr(encoder.get_submodule(parent), child, replacement)


def first_convolution(encoder: nn.Module) -> tuple[str, nn.Conv2d]:
    """The name and the module of the first convolution; raises if there is none."""
    for name, module in encoder.named_modules():
        if isinstance(module, nn.Conv2d):
            return name, module
    raise ProtoPFaithError(
        f"{type(encoder).__name__} has no convolution, so its number of input channels cannot be changed."
    )


def load_weights(encoder: nn.Module, path: Path | str) -> None:
    """Fills `encoder` from a file: a state dict in `.safetensors` or PyTorch's format, of the encoder, of
    the whole classification network (its head is left out) or a checkpoint of ours (its encoder is taken).

    Everything is cast to the encoder's number format; a first convolution for another number of channels is
    adapted by `fold_channels`; any other difference is an error.
    """
    if isinstance(encoder, Wrapped):
        load_weights(encoder.network, path)
        return
    state = _without_prefixes(read_state_dict(path))
    expected = encoder.state_dict()
    state = {key: value for key, value in state.items() if key in expected or key.split(".")[0] not in HEADS}
    first = next((key for key, value in expected.items() if value.dim() == 4), None)
    if first in state and _other_channels(state[first], expected[first]):
        state[first] = fold_channels(state[first].float(), expected[first].shape[1])
    problems = differences(state, expected)
    if problems:
        raise ProtoPFaithError(
            f"The weights in {path} do not fit this encoder: {problems}; give a state dict of the same "
            "network, or name the network that they belong to."
        )
    encoder.load_state_dict(state, strict=False)  # what is missing are counters alone, see `differences`


def _other_channels(weight: Tensor, expected: Tensor) -> bool:
    return (
        weight.dim() == 4
        and weight.shape[1] != expected.shape[1]
        and weight[:, 0].shape == expected[:, 0].shape
    )


def differences(state: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> str:
    """Names what keeps `state` from filling `expected`: empty if nothing does."""
    missing = [key for key in expected if key not in state and not key.endswith("num_batches_tracked")]
    unknown = [key for key in state if key not in expected]
    shapes = [
        f"{key} is {_shape(state[key])} instead of {_shape(expected[key])}"
        for key in expected
        if key in state and state[key].shape != expected[key].shape
    ]
    parts = [
        ("it lacks ", missing),
        ("it has the unknown ", unknown),
        ("", shapes),
    ]
    return "; ".join(start + _some(names) for start, names in parts if names)


def _shape(tensor: Tensor) -> str:
    return " x ".join(map(str, tensor.shape)) or "a number"


def _some(names: list[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def read_state_dict(path: Path | str) -> dict[str, Tensor]:
    """The tensors in a file, on the CPU; nothing in the file is executed."""
    path = Path(path)
    check_weights_file(path)
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            content: Any = load_file(path)
        else:
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # unpickling raises almost anything on a broken or foreign file
        raise ProtoPFaithError(
            f"{path} could not be read as weights: it is cut short, or neither .safetensors nor a state dict "
            "that torch.load reads with weights_only=True; save it as one of these."
        ) from error
    if isinstance(content, dict) and isinstance(content.get("state_dict"), dict):
        content = content["state_dict"]
    if not isinstance(content, dict) or not all(isinstance(value, Tensor) for value in content.values()):
        raise ProtoPFaithError(f"{path} holds no state dict (named tensors): save module.state_dict() there.")
    return dict(content)


def _without_prefixes(state: dict[str, Tensor]) -> dict[str, Tensor]:
    if state and all(key.startswith("module.") for key in state):  # as DistributedDataParallel saves
        state = {key.removeprefix("module."): value for key, value in state.items()}
    inner = {key.removeprefix("encoder."): v for key, v in state.items() if key.startswith("encoder.")}
    return inner if inner and "prototypes" in state else state

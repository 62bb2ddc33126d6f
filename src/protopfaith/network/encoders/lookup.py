"""From a name to an encoder: ours by registration, torchvision's by their names, timm's as `timm:NAME`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from protopfaith.annotations import check_arguments
from protopfaith.arguments import instance, whole_number
from protopfaith.encoder_names import ALIASES, TIMM, is_published, unknown_encoder
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import reason
from protopfaith.network.encoders.adapt import load_weights
from protopfaith.network.encoders.libraries import (
    cut_at,
    has_timm_model,
    timm_encoder,
    torchvision_encoder,
    torchvision_names,
)
from protopfaith.registry import Registry, borrowed

Build = Callable[[int, str | None], nn.Module]
"""From (input channels, name of published weights or None) to a module that returns a feature map."""

PROBE_SIZES = (64, 128, 224, 256)


class EncoderRegistry(Registry[Build]):
    """The registered encoders; any other name is looked for in torchvision, and behind `timm:` in timm.

    `NAME@LAYER` is torchvision's network up to that layer of its, as `resnet50@layer3`.
    """

    def register(self, name: str) -> Callable[[Build], Build]:
        add = super().register(name)

        def add_callable(build: Build) -> Build:
            try:
                inspect.signature(build).bind(3, None)
            except TypeError as error:
                raise ProtoPFaithError(
                    f"The encoder {name!r} cannot be built ({error}); give it the two parameters "
                    "in_channels and weights."
                ) from error
            return add(build)

        return add_callable

    def __contains__(self, name: object) -> bool:
        """Whether `self[name]` gives an encoder: those of the libraries count, too."""
        if not isinstance(name, str):
            return False
        if name.startswith(TIMM):
            return has_timm_model(name.removeprefix(TIMM))
        if "@" in name:
            return _can_be_cut(*name.split("@", 1))
        return super().__contains__(name) or name in ALIASES or name in torchvision_names()

    def __missing__(self, name: str) -> Build:
        if not isinstance(name, str):
            return super().__missing__(name)
        if name in ALIASES:
            return self[ALIASES[name]]
        if name.startswith(TIMM):
            return partial(timm_encoder, name.removeprefix(TIMM))
        whole, at, layer = name.partition("@")
        if at and whole in torchvision_names():
            return partial(cut_at, whole, layer)
        if name in torchvision_names():
            return partial(torchvision_encoder, name)
        raise unknown_encoder(name, self)


def _can_be_cut(name: str, layer: str) -> bool:
    if name not in torchvision_names():
        return False
    try:
        with torch.device("meta"):  # no memory is taken
            cut_at(name, layer)
    except ProtoPFaithError:
        return False
    return True


ENCODERS = EncoderRegistry("encoder")


def build_encoder(name: str, in_channels: int = 3, weights: str | Path | None = None) -> nn.Module:
    """The encoder `name` for images of `in_channels` channels.

    `weights` is `None` (random), `"imagenet"` or a member of torchvision's weight enum of that network
    such as `"IMAGENET1K_V2"` (downloaded once, then cached), or the path of a state dict.

    Args:
        name: one of `ENCODERS`: ours, torchvision's, or `timm:NAME`
        in_channels: of the images
        weights: None, "imagenet", a member of torchvision's weight enum, or the path of a file

    >>> build_encoder("small")(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 96, 4, 4])
    """
    check_arguments(build_encoder, locals())
    whole_number(in_channels, "The number of image channels", least=1, most=1024)
    build = ENCODERS[name]
    published = str(weights) if weights is not None and is_published(weights) else None
    with borrowed(f"The encoder {name!r}", build):
        encoder = build(in_channels, published)
    if weights is None or published is not None:
        return encoder
    load_weights(encoder, weights)
    return encoder


def output_channels(encoder: nn.Module, in_channels: int, name: str | None = None) -> int:
    """The number of channels of the feature map, found by passing a small empty image through the encoder.

    Args:
        encoder: any module that gives a feature map
        in_channels: of the images that it takes
        name: what to call it in an error

    >>> output_channels(build_encoder("small"), 3)
    96
    """
    instance(encoder, nn.Module, "An encoder", "a module")
    whole_number(in_channels, "The number of image channels", least=1)
    problem = "it has not been called"
    for size in PROBE_SIZES:
        try:
            features = _probe(encoder, in_channels, size)
        except Exception as error:  # whatever a foreign module raises: a larger image may be what it needs
            problem = f"it fails on {in_channels} x {size} x {size} with: {reason(error)}"
            continue
        if isinstance(features, Tensor) and features.dim() == 4:
            return features.shape[1]
        problem = f"it returned {_describe(features)}"
        break
    raise ProtoPFaithError(
        f"The encoder {name or type(encoder).__name__} gives no feature map: {problem}; an encoder takes "
        f"images of {in_channels} channels (in_channels) and returns B x channels x height x width."
    )


def _probe(encoder: nn.Module, in_channels: int, size: int) -> object:
    training = {module: module.training for module in encoder.modules()}
    like = next(encoder.parameters(), torch.empty(0))
    try:
        encoder.eval()  # batch statistics and random numbers stay as they were
        with torch.no_grad():
            return encoder(torch.zeros(1, in_channels, size, size, device=like.device, dtype=like.dtype))
    finally:
        for module, mode in training.items():
            module.training = mode


def _describe(output: object) -> str:
    return f"a tensor of shape {tuple(output.shape)}" if isinstance(output, Tensor) else type(output).__name__

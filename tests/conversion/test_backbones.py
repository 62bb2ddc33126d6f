"""Encoders are known by the names and shapes of their tensors."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from protopfaith.conversion.backbones import (
    encoder_differences,
    find_encoder,
    in_channels,
    modern_names,
)
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ENCODERS


def state_of(name: str, channels: int = 3) -> dict[str, Tensor]:
    """Names and shapes alone."""
    with torch.device("meta"):
        return dict(ENCODERS[name](channels, None).state_dict())


@pytest.mark.parametrize("name", ["resnet34", "densenet121", "vgg11", "vgg11_bn"])
def test_an_encoder_is_found_by_its_own_tensors(name: str) -> None:
    assert find_encoder(state_of(name), "a.pth") == name
    assert in_channels(state_of(name, 1)) == 1
    assert find_encoder(state_of(name, 1), "a.pth") == name


@pytest.mark.parametrize("other", ["resnet18", "wide_resnet50_2", "resnext50_32x4d", "vgg16"])
def test_shapes_tell_encoders_of_the_same_names_apart(other: str) -> None:
    state = state_of(other)
    assert encoder_differences("resnet50", state)
    assert not encoder_differences(other, state)


@pytest.mark.parametrize("channels", [2, 4, 6])
def test_images_have_one_or_three_channels(channels: int) -> None:
    assert f"{channels} channels instead of 1 or 3" in encoder_differences(
        "resnet18", state_of("resnet18", channels)
    )
    with pytest.raises(ProtoPFaithError, match=f"images of {channels} channels"):
        find_encoder(state_of("resnet18", channels), "a.pth")


def test_what_is_no_encoder_is_one_sentence() -> None:
    odd = state_of("vgg11")
    odd["features.0.weight"] = torch.empty(64, 3, 5, 5, device="meta")
    for state in (odd, {"weights": torch.zeros(3)}, {}):
        with pytest.raises(ProtoPFaithError, match=r"The encoder in a\.pth is none of"):
            find_encoder(state, "a.pth")
    assert in_channels({}) == 3


def test_names_of_old_densenets_become_those_of_today() -> None:
    today = state_of("densenet121")
    old = {
        key.replace("norm1.", "norm.1.").replace("conv2.", "conv.2.") if "denselayer" in key else key: tensor
        for key, tensor in today.items()
    }
    assert old.keys() != today.keys()
    assert modern_names(old).keys() == today.keys()
    assert find_encoder(modern_names(old), "a.pth") == "densenet121"
    assert modern_names(today).keys() == today.keys()

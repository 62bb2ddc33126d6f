from __future__ import annotations

import importlib.util

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.moments import Gaussian
from protopfaith.network import ProtoPNet, build_encoder
from protopfaith.network.encoders import lite
from protopfaith.network.encoders.adapt import read_state_dict

pytestmark = pytest.mark.skipif(not lite.has_lite_weights(), reason="the weights are an extra")


def test_every_weight_of_the_file_finds_its_place() -> None:
    """Under timm's names: the first and the last convolution, and a block between."""
    kept = read_state_dict(lite.weights_file())
    filled = build_encoder("efficientnet_lite0", weights="imagenet").network.state_dict()
    for theirs, ours in (
        ("_conv_stem.weight", "conv_stem.weight"),
        ("_blocks.1._expand_conv.weight", "blocks.1.0.conv_pw.weight"),
        ("_blocks.15._bn2.running_var", "blocks.6.0.bn3.running_var"),
        ("_conv_head.weight", "conv_head.weight"),
        ("_bn1.running_mean", "bn2.running_mean"),
    ):
        assert torch.equal(filled[ours], kept[theirs])


def test_gray_images_give_what_gray_copies_gave() -> None:
    gray, color = (build_encoder("efficientnet_lite0", n, "imagenet").eval() for n in (1, 3))
    image = torch.rand(1, 1, 64, 64)
    with torch.no_grad():
        assert torch.allclose(gray(image), color(image.expand(-1, 3, -1, -1)), atol=1e-3)


def test_distributions_of_images_pass_through_it() -> None:
    model = ProtoPNet("efficientnet_lite0", 2, 1, 8).eval()
    image = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        moments = model.distances(Gaussian(image, torch.zeros_like(image)))  # type: ignore[arg-type]
        assert torch.allclose(moments.mean, model.distances(image), rtol=1e-3)  # type: ignore[attr-defined]


def test_without_the_package_one_sentence_says_how_to_get_it(monkeypatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(lite, "find_spec", lambda name: None if name == lite.PACKAGE else found(name))
    with pytest.raises(ProtoPFaithError, match=r"protopfaith\[lite\]"):
        build_encoder("efficientnet_lite0", weights="imagenet")
    monkeypatch.setattr(lite, "find_spec", lambda name: None)
    with pytest.raises(ProtoPFaithError, match="needs timm"):
        build_encoder("efficientnet_lite0")


def test_a_file_of_another_network_is_refused(tmp_path, monkeypatch) -> None:
    state = read_state_dict(lite.weights_file())
    state["_conv_head.weight"] = state["_conv_head.weight"][:, :3]
    torch.save(state, tmp_path / "other.pth")
    monkeypatch.setattr(lite, "weights_file", lambda: tmp_path / "other.pth")
    with pytest.raises(ProtoPFaithError, match="another network"):
        build_encoder("efficientnet_lite0", weights="imagenet")

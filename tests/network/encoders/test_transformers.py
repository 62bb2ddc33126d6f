"""Vision transformers give their tokens as a map, at any size, and are explained by sampling."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch
import torchvision
from torch import nn

from protopfaith.errors import ProtoPFaithError
from protopfaith.moments import Gaussian
from protopfaith.network import FusedProtoPNet, ProtoPNet, build_encoder, load, output_channels, save
from protopfaith.network.encoders.transformers import TokenMap, resized_positions, tokens_to_map
from protopfaith.shapley import ESTIMATORS, Game, Players, estimate

needs_timm = pytest.mark.skipif(importlib.util.find_spec("timm") is None, reason="timm is an extra")
TIMM = {
    "vit_tiny_patch16_224": 16,
    "deit_tiny_patch16_224": 16,
    "deit_tiny_distilled_patch16_224": 16,
    "vit_small_patch14_reg4_dinov2": 14,
}
"""Plain, DeiT, with two and with five tokens that belong to no patch; side of a patch in pixels."""


def small_vit(size: int = 32) -> torchvision.models.VisionTransformer:
    torch.manual_seed(0)
    network = torchvision.models.VisionTransformer(size, 8, 2, 2, 16, 32)
    nn.init.normal_(network.class_token)
    nn.init.normal_(network.encoder.pos_embedding)
    return network.eval()


@torch.no_grad()
def test_the_map_holds_torchvisions_own_tokens() -> None:
    network = small_vit()
    x = torch.rand(2, 3, 32, 32)
    tokens: list[torch.Tensor] = []
    network.encoder.ln.register_forward_hook(lambda module, inputs, output: tokens.append(output))
    network(x)
    found = TokenMap(network)(x)
    assert found.shape == (2, 16, 4, 4)
    for row in range(4):
        for column in range(4):
            torch.testing.assert_close(found[:, :, row, column], tokens[0][:, 1 + 4 * row + column])


@torch.no_grad()
def test_other_sizes_and_channels_work() -> None:
    encoder = TokenMap(small_vit())
    assert encoder(torch.rand(1, 3, 48, 24)).shape == (1, 16, 6, 3)
    assert output_channels(build_encoder("vit_b_32", 1), 1) == 768


@torch.no_grad()
def test_positions_are_interpolated() -> None:
    across = torch.arange(4.0).expand(4, 4)
    positions = torch.cat([torch.full((1, 1, 2), 9.0), across.reshape(1, 16, 1).repeat(1, 1, 2)], 1)
    assert resized_positions(positions, (4, 4), 1) is positions
    found = resized_positions(positions, (4, 8), 1)
    assert torch.equal(found[:, :1], positions[:, :1])
    grid = found[0, 1:, 0].reshape(4, 8)
    assert bool((grid.diff(dim=1) > 0).all())
    assert float(grid.diff(dim=0).abs().max()) < 1e-5


def test_a_position_knows_its_patch() -> None:
    """A patch changes the token at its place most, without blocks that mix."""
    network = small_vit()
    network.encoder.layers = nn.Sequential()
    encoder = TokenMap(network)
    x = torch.rand(1, 3, 32, 32)
    other = x.clone()
    other[:, :, 8:16, 24:32] = 0
    with torch.no_grad():
        change = (encoder(other) - encoder(x)).square().sum(1)[0]
    assert int(change.argmax()) == 1 * 4 + 3
    assert int((change > 1e-9).sum()) == 1


def test_weights_from_a_file_leave_the_head_out(tmp_path: Path) -> None:
    network = torchvision.models.vit_b_32()
    torch.save(network.state_dict(), tmp_path / "vit.pth")
    encoder = build_encoder("vit_b_32", weights=tmp_path / "vit.pth")
    assert isinstance(encoder, TokenMap)
    assert torch.equal(encoder.network.conv_proj.weight, network.conv_proj.weight)
    one = build_encoder("vit_b_32", 1, tmp_path / "vit.pth")
    torch.testing.assert_close(
        one.get_submodule("network.conv_proj").weight, network.conv_proj.weight.sum(1, keepdim=True)
    )


@needs_timm
@pytest.mark.parametrize("name", TIMM)
@torch.no_grad()
def test_timms_transformers_give_their_tokens(name: str) -> None:
    side = TIMM[name]
    encoder = build_encoder(f"timm:{name}").eval()
    for height, width in ((4, 4), (3, 5)):
        x = torch.rand(1, 3, height * side, width * side)
        tokens = encoder.network.forward_features(x)  # type: ignore[operator, union-attr]
        found = encoder(x)
        assert found.shape[-2:] == (height, width)
        first = encoder.network.num_prefix_tokens  # type: ignore[union-attr]
        expected = tokens[0, first:].reshape(height, width, -1).permute(2, 0, 1)  # type: ignore[index, misc]
        torch.testing.assert_close(found[0], expected)


@pytest.fixture(scope="module")
def model() -> ProtoPNet:
    return ProtoPNet(TokenMap(small_vit()), 2, 2, 8).eval()


@torch.no_grad()
def test_fused_networks_fall_back_by_themselves(model: ProtoPNet) -> None:
    x = torch.rand(2, 3, 32, 32)
    torch.testing.assert_close(FusedProtoPNet(model).distances(x), model.distances(x))


@pytest.mark.parametrize("name", ["default", "owen", "permutation", "kernel"])
def test_sampling_explains_them_as_they_are(model: ProtoPNet, name: str) -> None:
    players = Players.windows((32, 32), 16)
    image = torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(1))
    game = Game(model.distances, image, players)
    exact = estimate(game, "exact")
    found = estimate(game, name, budget=3000)
    assert found.values.shape == (4, 4)
    assert float((found.values - exact.values).abs().max()) < 0.2 * float(exact.values.abs().max()) + 1e-4


@pytest.mark.parametrize("name", ["dasp", "moment_path"])
def test_moments_name_sampling_as_the_way(model: ProtoPNet, name: str) -> None:
    assert name in ESTIMATORS
    game = Game(model.distances, torch.rand(3, 32, 32), Players.windows((32, 32), 16))
    with pytest.raises(ProtoPFaithError, match=r"no moment rule.*sampling estimator \(default, owen"):
        estimate(game, name)


def test_a_transformer_with_class_tokens_says_attention() -> None:
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = Gaussian(torch.rand(1, 4, 8), 0.1)
    with pytest.raises(ProtoPFaithError, match=r"no moment rule for attention.*sampling estimator"):
        attention(x, x, x)


def test_networks_are_saved_and_loaded(tmp_path: Path) -> None:
    network = ProtoPNet("vit_b_32", 2, 1, 4).eval()
    save(network, tmp_path / "model.safetensors")
    again, _ = load(tmp_path / "model.safetensors")
    x = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(again.distances(x), network.distances(x))


def test_tokens_of_no_patch_are_left_out() -> None:
    tokens = torch.arange(2 * 7.0).reshape(2, 7, 1)
    assert tokens_to_map(tokens, (2, 3))[0, 0].tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]

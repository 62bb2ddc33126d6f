from __future__ import annotations

import pytest
import torch
import torchvision
from safetensors.torch import save_file

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ProtoPNet, build_encoder, save
from protopfaith.network.encoders.adapt import fold_channels


@pytest.fixture(scope="module")
def classifier():
    return torchvision.models.resnet18()


@pytest.mark.parametrize("in_channels", [1, 2, 5])
def test_a_gray_image_gives_the_same_in_any_number_of_channels(in_channels):
    generator = torch.Generator().manual_seed(0)
    weight = torch.rand(4, 3, 3, 3, generator=generator)
    gray = torch.rand(1, 1, 8, 8, generator=generator)
    convolve = torch.nn.functional.conv2d
    folded = convolve(gray.repeat(1, in_channels, 1, 1), fold_channels(weight, in_channels))
    torch.testing.assert_close(folded, convolve(gray.repeat(1, 3, 1, 1), weight))


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_weights_from_a_file_with_a_head_in_half_precision(classifier, tmp_path, suffix):
    path = tmp_path / f"weights{suffix}"
    state = {
        key: value.half() if value.dim() == 4 else value.clone()
        for key, value in classifier.state_dict().items()
    }
    save_file(state, path) if suffix == ".safetensors" else torch.save(state, path)
    encoder = build_encoder("resnet18", weights=path)
    for key, value in encoder.state_dict().items():
        assert torch.equal(value, state[key].to(value.dtype)), key
        assert value.dtype in (torch.float32, torch.int64)


def test_one_channel_takes_the_sum(classifier, tmp_path):
    torch.save(classifier.state_dict(), tmp_path / "w.pth")
    encoder = build_encoder("resnet18", in_channels=1, weights=tmp_path / "w.pth")
    torch.testing.assert_close(encoder.conv1.weight, classifier.conv1.weight.sum(1, keepdim=True))
    assert torch.equal(encoder.layer1[0].conv1.weight, classifier.layer1[0].conv1.weight)


def test_nested_and_distributed_state_dicts(classifier, tmp_path):
    state = {f"module.{key}": value for key, value in classifier.state_dict().items()}
    torch.save({"state_dict": state, "epoch": 3}, tmp_path / "w.pth")
    encoder = build_encoder("resnet18", weights=str(tmp_path / "w.pth"))
    assert torch.equal(encoder.conv1.weight, classifier.conv1.weight)


def test_the_encoder_of_our_own_checkpoint(tmp_path):
    model = ProtoPNet("small", 2, 1, 4)
    save(model, tmp_path / "model.safetensors")
    encoder = build_encoder("small", weights=tmp_path / "model.safetensors")
    assert torch.equal(encoder[0].weight, model.encoder[0].weight)


def test_old_files_without_counters(classifier, tmp_path):
    state = {k: v for k, v in classifier.state_dict().items() if not k.endswith("num_batches_tracked")}
    torch.save(state, tmp_path / "w.pth")
    build_encoder("resnet18", weights=tmp_path / "w.pth")


def test_weights_of_another_network_are_named(classifier, tmp_path):
    torch.save(classifier.state_dict(), tmp_path / "w.pth")
    with pytest.raises(ProtoPFaithError, match=r"it lacks layer1.0.conv3.weight.*and \d+ more") as caught:
        build_encoder("resnet50", weights=tmp_path / "w.pth")
    assert "layer1.0.conv1.weight is 64 x 64 x 3 x 3 instead of 64 x 64 x 1 x 1" in str(caught.value)
    torch.save(classifier.state_dict() | {"extra": torch.ones(1)}, tmp_path / "w.pth")
    with pytest.raises(ProtoPFaithError, match="it has the unknown extra;"):
        build_encoder("resnet18", weights=tmp_path / "w.pth")


def test_files_that_are_no_weights(tmp_path):
    with pytest.raises(ProtoPFaithError, match="no file of weights"):
        build_encoder("small", weights=tmp_path / "missing.pth")
    for name in ("broken.pth", "broken.safetensors"):
        (tmp_path / name).write_bytes(b"PK\3\4 this is no archive")
        with pytest.raises(ProtoPFaithError, match="could not be read as weights"):
            build_encoder("small", weights=tmp_path / name)
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(ProtoPFaithError, match="holds no state dict"):
        build_encoder("small", weights=tmp_path / "list.pth")

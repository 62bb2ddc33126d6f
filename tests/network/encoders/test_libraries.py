from __future__ import annotations

import importlib.util
import urllib.request

import pytest
import torch
import torchvision
from torch.nn.functional import adaptive_avg_pool2d

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ENCODERS, ProtoPNet, build_encoder, output_channels
from protopfaith.network.encoders.libraries import feature_map_part

# Networks of different build, and how each gets from its feature map to its logits.
HEADS = {
    "resnet18": lambda net, z: net.fc(adaptive_avg_pool2d(z, 1).flatten(1)),
    "densenet121": lambda net, z: net.classifier(adaptive_avg_pool2d(z, 1).flatten(1)),
    "mobilenet_v2": lambda net, z: net.classifier(adaptive_avg_pool2d(z, 1).flatten(1)),
    "mnasnet0_5": lambda net, z: net.classifier(z.mean((2, 3))),
    "shufflenet_v2_x0_5": lambda net, z: net.fc(z.mean((2, 3))),
    "squeezenet1_1": lambda net, z: net.classifier(z).flatten(1),
    "regnet_y_400mf": lambda net, z: net.fc(net.avgpool(z).flatten(1)),
    "efficientnet_b0": lambda net, z: net.classifier(net.avgpool(z).flatten(1)),
    "convnext_tiny": lambda net, z: net.classifier(net.avgpool(z)),
    "swin_t": lambda net, z: net.head(net.avgpool(z).flatten(1)),
}


@pytest.mark.parametrize("name", HEADS)
def test_the_part_before_the_head_is_complete(name):
    """Putting torchvision's own head back on gives torchvision's own logits."""
    network = torchvision.models.get_model(name).eval()
    x = torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(HEADS[name](network, feature_map_part(network)(x)), network(x))


@pytest.mark.parametrize("name", ["googlenet", "alexnet"])
def test_other_networks_by_name(name):
    assert output_channels(build_encoder(name, 2), 2) > 100


def test_auxiliary_classifiers_do_not_cut_the_network_short():
    """With published weights Inception comes with one in its middle."""
    network = torchvision.models.inception_v3(aux_logits=True, init_weights=False)
    assert output_channels(feature_map_part(network), 3) == network.fc.in_features


@pytest.mark.parametrize(
    ("name", "last", "edge"), [("inception_v3", "Conv2d_2a_3x3", 0), ("googlenet", "maxpool1", 2)]
)
def test_networks_that_change_colors_get_them_as_published(name, last, edge):
    """Their weights are for images in -1..1, which torchvision makes of ImageNet's colors on the way."""
    torch.manual_seed(0)
    network = torchvision.models.get_model(name, aux_logits=False, init_weights=False, transform_input=True)
    for norm in network.modules():
        if isinstance(norm, torch.nn.BatchNorm2d):
            norm.running_mean.normal_(std=0.1)
    kept, x = [], torch.randn(2, 3, 96, 96)
    network.eval().get_submodule(last).register_forward_hook(lambda *found: kept.append(found[2].clone()))
    with torch.no_grad():
        network(x)
        feature_map_part(network)(x)
    whole, part = kept
    inside = slice(edge, whole.shape[2] - edge)
    torch.testing.assert_close(part[:, :, inside, inside], whole[:, :, inside, inside])


def test_parameters_keep_torchvisions_names():
    whole = torchvision.models.resnet18().state_dict()
    part = build_encoder("resnet18").state_dict()
    assert set(whole) - set(part) == {"fc.weight", "fc.bias"}


def test_unknown_version_of_weights():
    with pytest.raises(ProtoPFaithError, match="it has: IMAGENET1K_V1, IMAGENET1K_V2"):
        build_encoder("resnet50", weights="IMAGENET1K_V7")


def test_offline_without_a_cached_file_is_one_sentence(tmp_path, monkeypatch):
    """The only way out is a proxy that does not exist, and the cache is empty."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(urllib.request, "_opener", None)  # it may remember other proxies
    with pytest.raises(ProtoPFaithError, match=r"resnet18 are not cached.*resnet18\.pth") as caught:
        build_encoder("resnet18", weights="imagenet")
    assert "\n" not in str(caught.value)


needs_timm = pytest.mark.skipif(importlib.util.find_spec("timm") is None, reason="timm is an extra")


@needs_timm
@pytest.mark.parametrize("name", ["resnet10t", "swin_tiny_patch4_window7_224"])
@pytest.mark.parametrize("size", [64, 96])
def test_timm(name, size):
    model = ProtoPNet(f"timm:{name}", 2, 2, 8, in_channels=2).eval()
    with torch.no_grad():
        assert model.distance_maps(torch.rand(1, 2, size, size)).shape == (1, 4, size // 32, size // 32)


@needs_timm
def test_timm_of_a_size_that_is_no_multiple_of_224():
    assert output_channels(build_encoder("timm:maxvit_rmlp_pico_rw_256"), 3) == 256


@needs_timm
def test_timm_without_a_feature_map_and_unknown_names():
    with pytest.raises(ProtoPFaithError, match="timm:pit_ti_224 gives no feature map"):
        ProtoPNet("timm:pit_ti_224", 2)
    with pytest.raises(ProtoPFaithError, match="no model named 'resnet5O'"):
        build_encoder("timm:resnet5O")


@pytest.mark.parametrize(
    ("name", "layer", "channels", "stride"),
    [
        ("resnet18", "layer3", 256, 16),
        ("vgg11", "features.19", 512, 16),
        ("densenet121", "features.norm5", 1024, 32),
    ],
)
def test_a_network_cut_at_a_layer_gives_what_that_layer_gives(name, layer, channels, stride):
    whole, cut = build_encoder(name).eval(), build_encoder(f"{name}@{layer}").eval()
    cut.load_state_dict({key: whole.state_dict()[key] for key in cut.state_dict()})
    kept = []
    whole.get_submodule(layer).register_forward_hook(
        lambda module, inputs, output: kept.append(output.clone())
    )
    x = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        whole(x)
        assert torch.allclose(cut(x), kept[0], atol=1e-5)
    assert kept[0].shape == (1, channels, 64 // stride, 64 // stride)


@pytest.mark.parametrize(
    "name", ["resnet18@layer9", "resnet18@", "resnet18@layer4.0.conv1", "nothing@layer1"]
)
def test_what_cannot_be_cut_is_in_no_registry(name):
    assert name not in ENCODERS
    with pytest.raises(ProtoPFaithError):
        build_encoder(name)


def test_torchvision_never_opens_a_file_of_weights(tmp_path, monkeypatch):
    """What was read as tensors is what the network gets, also where the file is another one by then."""
    weights = torchvision.models.ResNet18_Weights.IMAGENET1K_V1
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    file = tmp_path / "hub" / "checkpoints" / weights.url.rsplit("/", 1)[1]
    file.parent.mkdir(parents=True)
    network = torchvision.models.resnet18()
    torch.save(network.state_dict(), file)
    reads, read = [], torch.load

    def load_once(*args, **options):
        reads.append(options.get("weights_only"))
        found = read(*args, **options)
        file.write_bytes(b"something else by now")
        return found

    monkeypatch.setattr(torch, "load", load_once)
    monkeypatch.setattr(torch.serialization, "load", load_once)
    encoder = build_encoder("resnet18", weights="imagenet")
    assert reads == [True]
    assert torch.equal(encoder.conv1.weight, network.conv1.weight)
    assert "get_state_dict" not in vars(type(weights))

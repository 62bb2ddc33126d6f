from __future__ import annotations

import pytest
import torch
from torch import nn

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ENCODERS, ProtoPNet, build_encoder, output_channels

PAPERS = ("convnet", "resnet", "resnet50", "resnet50_v1", "resnext50_32x4d", "wide_resnet50_2")
STRIDES = {"small": 8, "efficientnet_lite0": 32, **dict.fromkeys(PAPERS, 32)}  # of the feature map

PAPER = [
    ("resnet50", 200, 5, 128, 3, 24_314_816),
    ("resnext50", 200, 5, 128, 3, 23_786_688),
    ("wide_resnet50", 200, 5, 128, 3, 67_641_024),
    ("resnet", 2, 7, 512, 1, 17_825_528),
    ("convnet", 2, 7, 256, 1, 17_319_928),
]


@pytest.mark.parametrize("name", sorted(ENCODERS))
@pytest.mark.parametrize("in_channels", [1, 3])
def test_every_encoder_gives_a_feature_map(name, in_channels):
    encoder = build_encoder(name, in_channels).eval()
    channels = output_channels(encoder, in_channels)
    with torch.no_grad():
        features = encoder(torch.rand(2, in_channels, 64, 96))
    assert features.shape[:2] == (2, channels)
    stride = STRIDES.get(name) or round(64 / features.shape[2])
    assert abs(features.shape[2] - 64 / stride) <= 1
    assert abs(features.shape[3] - 96 / stride) <= 1
    assert features.isfinite().all()
    assert not torch.equal(features[0], features[1])


@pytest.mark.parametrize("paper", PAPER, ids=lambda paper: paper[0])
def test_parameter_counts_are_the_papers(paper):
    name, classes, per_class, channels, in_channels, figure = paper
    model = ProtoPNet(name, classes, per_class, channels, in_channels=in_channels)
    trainable = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    # The paper counts the fixed assignment of prototypes to classes as trainable.
    assert trainable + per_class * classes * classes == figure


def test_strides_of_the_original_resnet50():
    ours, first = build_encoder("resnet50"), build_encoder("resnet50_v1")
    assert ours.state_dict().keys() == first.state_dict().keys()
    for stage in ("layer2", "layer3", "layer4"):
        block = first.get_submodule(stage)[0]
        assert (block.conv1.stride, block.conv2.stride) == ((2, 2), (1, 1))


@pytest.mark.parametrize(
    "name", [*sorted(ENCODERS), "resnet18", "resnext50", "timm:resnet18", "timm:nothing", "resnet5O", "", 3]
)
def test_a_name_is_in_the_registry_if_and_only_if_it_gives_an_encoder(name):
    found = True
    try:
        ENCODERS[name](3, None)
    except (ProtoPFaithError, AttributeError):
        found = False
    assert (name in ENCODERS) == found


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(ProtoPFaithError, match="did you mean 'resnet50'"):
        build_encoder("resnet5O")


def test_published_weights_of_our_own_encoders_do_not_exist():
    for name in ("convnet", "resnet", "small"):
        with pytest.raises(ProtoPFaithError, match="no published weights"):
            build_encoder(name, weights="imagenet")


class Mapper(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(2, 7, 3)
        self.norm = nn.BatchNorm2d(7)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        return self.dropout(self.norm(self.convolution(x)))


def test_probing_leaves_no_trace():
    encoder = Mapper()
    encoder.norm.eval()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    state = torch.get_rng_state()
    assert output_channels(encoder, 2) == 7
    assert torch.equal(torch.get_rng_state(), state)
    assert encoder.training
    assert not encoder.norm.training
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())


class Picky(Mapper):
    def forward(self, x):
        return super().forward(x.unflatten(2, (-1, 128)).flatten(2, 3))


def test_probing_tries_larger_images():
    assert output_channels(Picky(), 2) == 7


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (nn.Sequential(Mapper(), nn.Flatten()), r"it returned a tensor of shape \(1, "),
        (Mapper(), "expected input"),
        (nn.Identity(), None),
    ],
)
def test_modules_that_give_no_feature_map(encoder, message):
    if message is None:  # an identity does give one
        assert output_channels(encoder, 3) == 3
        return
    channels = 3 if "expected" in message else 2
    with pytest.raises(ProtoPFaithError, match=message):
        ProtoPNet(encoder, 2, in_channels=channels)


def test_any_module_is_an_encoder():
    model = ProtoPNet(Mapper(), 2, 2, 8, in_channels=2)
    assert model(torch.rand(3, 2, 10, 12)).shape == (3, 2)
    assert model.distance_maps(torch.rand(3, 2, 10, 12)).shape == (3, 4, 8, 10)


def test_an_encoder_without_its_two_parameters_is_refused_where_it_is_registered():
    with pytest.raises(ProtoPFaithError, match=r"'without' cannot be built .* in_channels and weights"):
        ENCODERS.register("without")(lambda: nn.Conv2d(3, 8, 1))
    assert "without" not in ENCODERS


def test_what_the_encoder_of_somebody_else_raises_is_told_as_its_fault(monkeypatch):
    def build(in_channels, weights):
        return nn.Sequential(nn.Conv2d(in_channels, 4, 99), nn.Flatten(-1, 99))

    monkeypatch.setitem(ENCODERS, "mine", build)
    encoder = build_encoder("mine")
    with pytest.raises(ProtoPFaithError, match="gives no feature map: it fails on"):
        output_channels(encoder, 3, "mine")
    monkeypatch.setitem(ENCODERS, "mine", lambda in_channels, weights: in_channels / 0)
    with pytest.raises(ProtoPFaithError, match=r"The encoder 'mine' fails with ZeroDivisionError: .*\(line"):
        build_encoder("mine")


def test_an_encoder_that_raises_without_a_word_is_one_sentence():
    class Mute(nn.Module):
        def forward(self, x):
            raise NotImplementedError

    with pytest.raises(ProtoPFaithError, match="with: NotImplementedError"):
        output_channels(Mute(), 3)

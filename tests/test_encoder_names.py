"""Names of encoders are known without the libraries that have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from protopfaith.encoder_names import (
    ALIASES,
    check_encoder_name,
    check_weights_file,
    is_published,
    torchvision_names_in_files,
)
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ENCODERS
from protopfaith.network.encoders.libraries import torchvision_names


def test_names_in_files_are_those_that_torchvision_lists() -> None:
    assert torchvision_names_in_files() == torchvision_names()


@pytest.mark.parametrize("name", ["small", "vgg16", "resnet50@layer3", *ALIASES])
def test_known_names_pass(name: str) -> None:
    check_encoder_name(name, ENCODERS)


@pytest.mark.parametrize("name", ["resnt50", "vgg61", "resnt50@layer3"])
def test_unknown_names_are_refused_as_the_registry_does(name: str) -> None:
    with pytest.raises(ProtoPFaithError) as early:
        check_encoder_name(name, ENCODERS)
    with pytest.raises(ProtoPFaithError) as late:
        ENCODERS[name]
    assert str(early.value) == str(late.value)


def test_names_of_timm_are_looked_up_in_its_files() -> None:
    pytest.importorskip("timm")
    check_encoder_name("timm:resnet50", ENCODERS)
    check_encoder_name("timm:resnet50.a1_in1k", ENCODERS)
    with pytest.raises(ProtoPFaithError, match="timm has no model named 'resnt50'"):
        check_encoder_name("timm:resnt50", ENCODERS)


def test_weights_are_published_or_a_file(tmp_path: Path) -> None:
    assert is_published("imagenet")
    assert is_published("IMAGENET1K_V2")
    assert not is_published("weights.pth")
    with pytest.raises(ProtoPFaithError, match="no file of weights"):
        check_weights_file(tmp_path / "weights.pth")

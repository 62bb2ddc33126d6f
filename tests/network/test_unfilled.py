"""Networks that are built to be filled from a file."""

import math
import subprocess
import sys

import pytest
import torch
from torch import nn

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ProtoPNet
from protopfaith.network.checkpoint import load, save
from protopfaith.network.encoders import build_encoder
from protopfaith.network.unfilled import SPARE, Unfilled


@pytest.mark.parametrize("name", ["small", "resnet18", "vgg11", "convnext_tiny", "mobilenet_v3_small"])
def test_has_the_tensors_of_a_network_that_was_drawn(name):
    drawn = build_encoder(name).state_dict()
    with Unfilled(sum(part.numel() for part in drawn.values())):
        unfilled = build_encoder(name).state_dict()
    assert {key: part.shape for key, part in unfilled.items()} == {
        key: part.shape for key, part in drawn.items()
    }


def test_initializers_that_draw_until_all_are_within_bounds_end():
    with Unfilled(10**6):
        for low, high in ((-2.0, 2.0), (-0.001, 0.001), (0.1, 5.0), (2.0, 3.0)):
            drawn = nn.init.trunc_normal_(torch.full((100, 100), math.nan), a=low, b=high)
            assert ((drawn >= low) & (drawn <= high)).all()


def test_a_large_layer_is_made_without_a_draw_for_each_weight():
    with Unfilled(10**6):
        assert len(torch.empty(1000, 1000).normal_().unique()) == 1
        assert len(nn.init.xavier_uniform_(torch.empty(1000, 1000)).unique()) == 1


def test_refuses_more_weights_than_the_file_accounts_for():
    with Unfilled(1000):
        nn.Linear(1000, SPARE // 1001)
    with pytest.raises(ProtoPFaithError, match="much larger than the file"), Unfilled(1000):
        nn.Linear(1000, SPARE // 1000 + 10)


def test_a_loaded_network_is_the_saved_one(tmp_path):
    saved = ProtoPNet("resnet18", ["cat", "dog"], prototypes_per_class=1, prototype_channels=4).eval()
    save(saved, tmp_path / "model.safetensors")
    loaded, _ = load(tmp_path / "model.safetensors")
    image = torch.rand(1, 3, 64, 64)
    assert torch.equal(loaded(image), saved(image))
    assert all(torch.equal(part, saved.state_dict()[key]) for key, part in loaded.state_dict().items())


@pytest.mark.parametrize("encoder", ["convnext_tiny", "vit_b_16", "resnet18"])
def test_loading_draws_none_of_the_caller_s_random_numbers(encoder, tmp_path):
    save(
        ProtoPNet(encoder, ["cat", "dog"], prototypes_per_class=1, prototype_channels=4),
        tmp_path / "model.safetensors",
    )
    before = torch.get_rng_state()
    load(tmp_path / "model.safetensors")
    assert torch.equal(torch.get_rng_state(), before)


def test_loading_does_not_depend_on_the_default_dtype(tmp_path):
    saved = ProtoPNet("small", ["cat", "dog"], prototypes_per_class=1, prototype_channels=4)
    save(saved, tmp_path / "model.safetensors")
    torch.set_default_dtype(torch.bfloat16)
    try:
        loaded, _ = load(tmp_path / "model.safetensors")
    finally:
        torch.set_default_dtype(torch.float32)
    assert all(torch.equal(part, saved.state_dict()[key]) for key, part in loaded.state_dict().items())


def test_loading_does_not_import_the_compiler_of_torch(tmp_path):
    save(
        ProtoPNet("small", ["cat", "dog"], prototypes_per_class=1, prototype_channels=4),
        tmp_path / "m.safetensors",
    )
    code = (
        "import sys; from protopfaith.network.checkpoint import load; "
        f"load({str(tmp_path / 'm.safetensors')!r}); print('torch._dynamo.utils' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import (
    ACTIVATIONS,
    FAMILIES,
    ProtoPNet,
    PrototypeSource,
    load,
    prune,
    read_metadata,
    save,
)

METADATA = {"preprocessing": {"size": [96, 96], "mean": [0.5]}, "epoch": 3, "note": "prüfen"}


@pytest.fixture
def model():
    model = ProtoPNet("small", ["cat", "dög"], 2, 8, activation="sigmoid", similarity="log", in_channels=1)
    model.sources = [PrototypeSource("train/cat/1.jpg", 3, 4, "ab" * 32), None, None, None]
    model(torch.rand(4, 1, 32, 32))  # moves the batch statistics
    return model


@pytest.fixture
def path(model, tmp_path):
    path = tmp_path / "deep" / "model.safetensors"
    save(model, path, METADATA)
    return path


def test_round_trip_is_exact(model, path):
    again, metadata = load(path)
    assert metadata == METADATA
    assert again.config == model.config
    assert again.sources == model.sources
    assert again.class_names == ("cat", "dög")
    assert not again.training
    state = again.state_dict()
    assert state.keys() == model.state_dict().keys()
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    x = torch.rand(2, 1, 40, 40)
    assert torch.equal(again(x), model.eval()(x))


def test_the_file_is_plain_safetensors_with_json(path):
    with safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()["protopfaith"])
        assert "prototypes" in file.keys()  # noqa: SIM118 (not a dict)
    assert header["architecture"]["encoder"] == "small"
    assert header["sources"][0]["image"] == "train/cat/1.jpg"


def test_pruned_networks(model, path):
    pruned = prune(model, [0, 2, 3])
    save(pruned, path)
    again, _ = load(path)
    assert again.prototype_classes.tolist() == [0, 1, 1]
    assert again.sources == [model.sources[0], None, None]
    x = torch.rand(2, 1, 40, 40)
    assert torch.equal(again(x), pruned.eval()(x))


class Tied(nn.Module):
    """An encoder of the user's own, with weights that share memory."""

    def __init__(self, channels: int = 6):
        super().__init__()
        self.one = nn.Conv2d(1, channels, 3)
        self.two = nn.Conv2d(1, channels, 3)
        self.two.weight = self.one.weight

    def forward(self, x):
        return self.one(x) + self.two(x)


def test_own_encoders_are_given_again(tmp_path):
    model = ProtoPNet(Tied(), 2, 1, 4, in_channels=1).eval()
    save(model, tmp_path / "own.safetensors", METADATA)
    assert read_metadata(tmp_path / "own.safetensors") == METADATA  # needs no encoder
    with pytest.raises(ProtoPFaithError, match=r"test_checkpoint\.Tied.*load\(path, encoder=module\)"):
        load(tmp_path / "own.safetensors")
    again, _ = load(tmp_path / "own.safetensors", encoder=Tied())
    x = torch.rand(1, 1, 8, 8)
    assert torch.equal(again(x), model(x))
    with pytest.raises(ProtoPFaithError, match=r"one\.weight is 6 x 1 x 3 x 3 instead of 7 x 1 x 3 x 3"):
        load(tmp_path / "own.safetensors", encoder=Tied(7))


def test_no_file(tmp_path):
    with pytest.raises(ProtoPFaithError, match="There is no checkpoint at"):
        load(tmp_path / "nothing.safetensors")


@pytest.mark.parametrize("kept", [0, 4, 100, -1])
def test_cut_short(path, kept):
    content = path.read_bytes()
    path.write_bytes(content[:kept])
    with pytest.raises(ProtoPFaithError, match="is cut short or no safetensors file"):
        load(path)


def test_no_permission(path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    path.write_bytes(b"")  # what the library says of a file that it may not read, it says of this one, too
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ProtoPFaithError, match=r"cannot be read \(Permission denied\)"):
        load(path)


def test_somebody_elses_file(tmp_path):
    for metadata in (None, {"format": "pt"}, {"protopfaith": "[1]"}):
        save_file({"a": torch.ones(2)}, tmp_path / "other.safetensors", metadata=metadata)
        with pytest.raises(ProtoPFaithError, match="no checkpoint of protopfaith"):
            load(tmp_path / "other.safetensors")


def rewrite(path, **changes):
    """The same tensors under a changed header."""
    with safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()["protopfaith"]) | changes
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    save_file(tensors, path, metadata={"protopfaith": json.dumps(header)})


def test_format_of_the_future(path):
    rewrite(path, format=99)
    with pytest.raises(ProtoPFaithError, match=r"has format 99, but this version .* reads up to 1"):
        load(path)


@pytest.mark.parametrize(
    "architecture",
    [
        {"encoder": "small"},
        {"encoder": "small", "classes": 2, "unheard": 1},
        [1],
        None,
    ],
)
def test_header_that_describes_no_network(path, architecture):
    rewrite(path, architecture=architecture)
    with pytest.raises(ProtoPFaithError, match="describes no known network"):
        load(path)


def test_header_and_tensors_that_disagree(model, path):
    rewrite(path, architecture=model.config | {"prototype_channels": 4})
    with pytest.raises(ProtoPFaithError, match=r"another architecture.*prototypes is 4 x 8 instead of 4 x 4"):
        load(path)


def test_metadata_that_json_cannot_hold(model, path):
    before = path.read_bytes()
    with pytest.raises(ProtoPFaithError, match="cannot be written as JSON"):
        save(model, path, {"tensor": torch.ones(1)})
    assert path.read_bytes() == before


def test_a_full_disk_leaves_the_old_file(model, path):
    """The system itself refuses to write more than a few bytes, as it does when the disk is full."""
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(ProtoPFaithError, match="Could not write"):
            save(model, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_every_activation_comes_back(activation, tmp_path):
    model = ProtoPNet("small", 2, 2, 8, activation=activation).eval()
    save(model, tmp_path / "model.safetensors")
    again, _ = load(tmp_path / "model.safetensors")
    x = torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        assert torch.equal(model.distances(x), again.distances(x))


def test_other_layers_and_another_epsilon_come_back(tmp_path):
    model = ProtoPNet(
        "small", 2, 2, 8, similarity="log", epsilon=1e-2, layers=[16, "relu", 8, "sigmoid"]
    ).eval()
    save(model, tmp_path / "model.safetensors")
    again, _ = load(tmp_path / "model.safetensors")
    x = torch.rand(2, 3, 48, 48)
    assert again.config == model.config
    assert torch.equal(again(x), model(x))
    assert (again.epsilon, again.activation) == (1e-2, "sigmoid")


def test_networks_without_them_are_written_as_before(tmp_path):
    assert not {"epsilon", "layers"} & ProtoPNet("small", 2, 2, 8).config.keys()


def test_a_family_of_ones_own_comes_back_as_such(tmp_path: Path) -> None:
    """Although it says nothing of its name itself."""

    class Gentle(ProtoPNet):
        def similarities(self, distances: torch.Tensor) -> torch.Tensor:
            return torch.exp(-distances)

    FAMILIES["gentle"] = Gentle
    try:
        model = Gentle("small", ["cat", "dog"], 2, 8).eval()
        save(model, tmp_path / "model.safetensors")
        again, _ = load(tmp_path / "model.safetensors")
        assert type(again) is Gentle
        x = torch.rand(2, 3, 32, 32)
        with torch.no_grad():
            assert torch.equal(again.eval()(x), model(x))
            similar = torch.exp(-model.distances(x))
            assert torch.allclose(model(x), similar @ model.readout().T, atol=1e-6)
    finally:
        del FAMILIES["gentle"]
    with pytest.raises(ProtoPFaithError, match="--import"):
        load(tmp_path / "model.safetensors")

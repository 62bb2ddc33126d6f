from __future__ import annotations

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ProtoPNet


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return ProtoPNet("small", ["cat", "dog", "owl"], prototypes_per_class=2, prototype_channels=16).eval()


@pytest.fixture(scope="module")
def images():
    return torch.rand(4, 3, 32, 40, generator=torch.Generator().manual_seed(1))


def test_shapes(model, images):
    assert model.latent(images).shape == (4, 16, 4, 5)
    assert model.distance_maps(images).shape == (4, 6, 4, 5)
    assert model.distances(images).shape == (4, 6)
    assert model(images).shape == (4, 3)


def test_parts_start_as_the_paper_says(model):
    assert model.prototype_classes.tolist() == [0, 0, 1, 1, 2, 2]
    assert model.classifier.bias is None
    assert model.classifier.weight[1].tolist() == [-0.5, -0.5, 1, 1, -0.5, -0.5]
    assert ((model.prototypes >= 0) & (model.prototypes <= 1)).all()
    assert model.class_names == ("cat", "dog", "owl")
    assert model.sources == [None] * 6


def test_forward_is_the_composition(model, images):
    """s is the smallest squared difference over positions; the logits are F on -s."""
    z = model.latent(images)
    for image in range(4):
        for j, prototype in enumerate(model.prototypes):
            vectors = z[image].flatten(1).t()
            s = min((vector - prototype).square().sum() for vector in vectors)
            torch.testing.assert_close(model.distances(images)[image, j], s, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(model(images), -model.distances(images) @ model.classifier.weight.t())


def test_log_similarity(images):
    model = ProtoPNet("small", 2, 2, 8, similarity="log").eval()
    s = model.distances(images)
    torch.testing.assert_close(model(images), torch.log((s + 1) / (s + 1e-4)) @ model.classifier.weight.t())


@pytest.mark.parametrize("similarity", ["linear", "log"])
def test_logits_do_not_depend_on_autocast(similarity):
    """Distances that are all alike in bfloat16, by a sum that is small against its terms."""
    model = ProtoPNet("small", 3, 2, 8, similarity=similarity).eval()
    distances = torch.full((4, 6), 40.0) + torch.arange(24).reshape(4, 6) * 1e-3
    rows = torch.tensor([[1.0, -1, 1, -1, 1, -1]])
    with torch.no_grad():
        expected = model.logits(distances), model.logits(distances, rows)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found = model.logits(distances), model.logits(distances, rows)
    assert expected[0].shape == (4, 3)
    assert expected[1].shape == (4, 1)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == torch.float32
        assert torch.equal(ours, theirs)


def test_every_part_learns(images):
    torch.manual_seed(0)
    model = ProtoPNet("small", 2, 2, 8)
    torch.nn.functional.cross_entropy(model(images), torch.tensor([0, 1, 0, 1])).backward()
    for part in (model.encoder, model.features, model.classifier):
        assert all(parameter.grad.abs().sum() > 0 for parameter in part.parameters())
    assert model.prototypes.grad.abs().sum() > 0


def test_one_number_of_prototypes_for_each_class():
    model = ProtoPNet("small", 3, [1, 3, 2], 8)
    assert model.prototype_classes.tolist() == [0, 1, 1, 1, 2, 2]
    assert model.classifier.weight.shape == (3, 6)


def test_config_builds_the_same_network(model):
    config = dict(model.config)
    again = ProtoPNet(config.pop("encoder"), **config)
    assert again.config == model.config
    assert {k: v.shape for k, v in again.state_dict().items()} == {
        k: v.shape for k, v in model.state_dict().items()
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"classes": 1}, "at least two classes"),
        ({"classes": ["a", "a"]}, "different names"),
        ({"classes": 2, "prototypes_per_class": 0}, "at least one prototype"),
        ({"classes": 2, "prototypes_per_class": [1, 2, 3]}, "Each of the 2 classes"),
        ({"classes": 2, "activation": "tanh"}, "no activation named 'tanh'"),
        ({"classes": 2, "similarity": "cosine"}, "no similarity named 'cosine'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ProtoPFaithError, match=message):
        ProtoPNet("small", **arguments)

"""What all families have in common whose prototypes are compared with latent patches."""

from __future__ import annotations

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ProtoPNet, ProtoTree, squared_distances
from protopfaith.network.patches import MOST, PatchNetwork, check_layers, named_classes


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return ProtoPNet("small", ["cat", "dog", "owl"], prototypes_per_class=2, prototype_channels=16).eval()


@pytest.fixture(scope="module")
def images():
    return torch.rand(4, 3, 32, 40, generator=torch.Generator().manual_seed(1))


def test_distances_do_not_depend_on_autocast_behind_the_latent(model, images):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = model.latent(images)
        maps = model.distance_maps(images)
    assert z.dtype == torch.bfloat16
    assert maps.dtype == torch.float32
    assert torch.equal(maps, squared_distances(z, model.prototypes))


@pytest.mark.parametrize("shape", [(4, 1, 32, 32), (3, 32, 32)])
def test_images_of_another_shape(model, shape):
    with pytest.raises(ProtoPFaithError, match="takes images as B x 3 x height x width, but got"):
        model(torch.rand(shape))


def test_on_the_unit_sphere_distances_are_cosines(images):
    torch.manual_seed(0)
    model = ProtoPNet("small", 2, 3, 16, activation="unit").eval()
    z, p = model.latent(images), model.prototypes
    assert torch.allclose(z.norm(dim=1), torch.ones_like(z[:, 0]), atol=1e-5)
    assert torch.allclose(p.norm(dim=1), torch.ones(6), atol=1e-6)
    expected = 2 - 2 * torch.einsum("blhw,pl->bphw", z, p)
    assert torch.allclose(model.distance_maps(images), expected, atol=1e-5)
    with torch.no_grad():
        model.prototypes.mul_(3)
    model.settle_prototypes()
    assert torch.allclose(model.prototypes.norm(dim=1), torch.ones(6), atol=1e-6)


def test_elsewhere_prototypes_stay_where_they_are(model):
    before = model.prototypes.detach().clone()
    model.settle_prototypes()
    assert torch.equal(model.prototypes, before)


def test_prototypes_must_fit_the_layers():
    with pytest.raises(ProtoPFaithError, match="8 channels cannot be compared with the 4"):
        ProtoPNet("small", 2, 2, 8, layers=[4, "sigmoid"])


@pytest.mark.parametrize(
    "family",
    [
        lambda: ProtoPNet("small", 3, 2, 8),
        lambda: ProtoTree("small", ["a", "b"], depth=2, prototype_channels=8),
    ],
)
def test_distances_are_the_same_on_every_way_to_them(family, images):
    torch.manual_seed(0)
    model = family().eval()
    assert isinstance(model, PatchNetwork)
    with torch.no_grad():
        maps, encoded = model.distance_maps(images), model.encoder(images)
        assert torch.equal(model.distances(images), maps.flatten(2).min(2).values)
        assert torch.equal(model.encoded_maps(encoded), maps)
        assert torch.equal(model.encoded_distances(encoded), model.distances(images))
        assert torch.equal(model(images), model.logits(model.distances(images)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.uint8])
def test_images_of_another_type_are_refused(model, images, dtype):
    with pytest.raises(ProtoPFaithError, match=r"computes in torch\.float32, but got images of"):
        model((255 * images).to(dtype))
    with pytest.raises(TypeError, match="as a tensor, not ndarray"):
        model(images.numpy())


@pytest.mark.parametrize(
    "distances", [torch.zeros(2, 5), torch.zeros(2, 6, dtype=torch.long), [1.0] * 6, None]
)
def test_logits_need_a_distance_of_every_prototype(model, distances):
    with pytest.raises(ProtoPFaithError, match="Distances are"):
        model.logits(distances)


def test_class_names_come_from_a_number_or_a_list():
    assert named_classes(3) == ("0", "1", "2")
    assert named_classes(["cat", "dog"]) == ("cat", "dog")
    assert named_classes(["cat"], fewest=1) == ("cat",)
    for wrong in (1, ["cat"], ["cat", "cat"], [], ["cat", 3], MOST + 1):
        with pytest.raises(ProtoPFaithError):
            named_classes(wrong)


@pytest.mark.parametrize("layers", [[8, True], [8.0], "relu", 8, [None]])
def test_layers_are_channels_and_activations(layers):
    with pytest.raises(ProtoPFaithError, match="The layers must be a list"):
        check_layers(layers)

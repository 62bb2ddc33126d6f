import pytest
import torch
from torch import nn

from protopfaith.network import ProtoPNet, output_channels
from protopfaith.training.batches import ResidentImages
from protopfaith.training.initialization import patch_prototypes, spread_out


def test_spread_out_picks_different_vectors_near_the_centers():
    centers = torch.tensor([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    noise = torch.randn(3, 30, 2, generator=torch.Generator().manual_seed(0))
    vectors = (centers[:, None] + 0.1 * noise).flatten(0, 1)
    picked = spread_out(vectors, 3, seed=0)
    assert all((vectors == vector).all(dim=1).any() for vector in picked)
    nearest = torch.cdist(picked, centers)
    assert sorted(nearest.argmin(dim=1).tolist()) == [0, 1, 2]
    assert nearest.min(dim=1).values.max() < 0.2


def test_spread_out_repeats_when_there_are_too_few():
    assert spread_out(torch.ones(5, 2), 3, seed=0).tolist() == [[1.0, 1.0]] * 3


@pytest.mark.parametrize("evidence", [False, True])
def test_prototypes_are_latent_vectors_of_their_class(data, evidence):
    torch.manual_seed(0)
    model = ProtoPNet("small", list(data.classes), 2, 8)
    head = nn.Linear(output_channels(model.encoder, 3), 3) if evidence else None
    batches = ResidentImages(data.train, torch.device("cpu"))
    generator = torch.Generator().manual_seed(0)
    prototypes = patch_prototypes(model, batches, data.preprocessing, generator, head)
    with torch.no_grad():
        z = model.eval().latent(data.preprocessing.normalize(data.train.uint8()))
    for prototype, label in zip(prototypes, model.prototype_classes, strict=True):
        own = z[data.train.labels == label].transpose(0, 1).flatten(1).T
        assert (own - prototype).square().sum(dim=1).min() < 1e-10

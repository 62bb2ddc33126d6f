import pytest
import torch

from protopfaith.network import ProtoPNet
from protopfaith.training.batches import ResidentImages, StreamedImages
from protopfaith.training.projection import Candidates, choose, count_distinct, project

CPU = torch.device("cpu")


@pytest.fixture
def model(data):
    torch.manual_seed(0)
    return ProtoPNet("small", list(data.classes), 3, 8)


def latent_vectors(model, data, label):
    """Every latent vector of the class's training images, with where it is from: the slow way."""
    found = []
    with torch.no_grad():
        for index, path in enumerate(data.train.paths):
            if data.train.labels[index] == label:
                z = model.eval().latent(data.preprocessing(data.train.image(index))[None])[0]
                found += [(path, r, c, z[:, r, c]) for r in range(z.shape[1]) for c in range(z.shape[2])]
    return found


def test_prototypes_move_to_the_nearest_vector_of_their_class(model, data):
    before = model.prototypes.detach().clone()
    project(model, ResidentImages(data.train, CPU), data.train, data.preprocessing)
    for label in range(len(data.classes)):
        vectors = latent_vectors(model, data, label)
        for j in (model.prototype_classes == label).nonzero().flatten().tolist():
            gaps = torch.stack([(before[j] - vector).square().sum() for *_, vector in vectors])
            moved = (before[j] - model.prototypes[j]).square().sum()
            torch.testing.assert_close(moved, gaps.min(), rtol=1e-4, atol=1e-6)
            source = model.sources[j]
            own = {(path, r, c): vector for path, r, c, vector in vectors}
            torch.testing.assert_close(model.prototypes[j], own[source.image, source.row, source.column])
            assert source.sha256 == data.train.sha256(data.train.paths.index(source.image))


def test_streaming_gives_the_same_projection(model, data):
    resident = ProtoPNet("small", list(data.classes), 3, 8)
    resident.load_state_dict(model.state_dict())
    project(resident, ResidentImages(data.train, CPU), data.train, data.preprocessing, batch_size=5)
    project(model, StreamedImages(data.train, CPU, 0), data.train, data.preprocessing, batch_size=7)
    assert model.sources == resident.sources
    torch.testing.assert_close(model.prototypes, resident.prototypes)


def test_mode_of_the_model_is_kept_and_batch_norm_untouched(model, data):
    model.train()
    before = {name: tensor.clone() for name, tensor in model.encoder.state_dict().items()}
    project(model, ResidentImages(data.train, CPU), data.train, data.preprocessing)
    assert model.training
    for name, tensor in model.encoder.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_collapsed_prototypes_stay_collapsed_unless_distinct_is_asked_for(model, data):
    batches = ResidentImages(data.train, CPU)
    with torch.no_grad():
        model.prototypes.copy_(torch.full_like(model.prototypes, 0.3))
    project(model, batches, data.train, data.preprocessing)
    assert count_distinct(model) == len(data.classes)
    project(model, batches, data.train, data.preprocessing, distinct=True)
    assert count_distinct(model) == len(model.prototypes)
    for label in range(len(data.classes)):
        members = (model.prototype_classes == label).nonzero().flatten().tolist()
        assert len({model.sources[j].image for j in members}) == len(members)


def test_distances_are_zero_at_the_sources_of_a_trained_model(trained, data):
    model = trained.model()
    limit = 1e-6 * model.prototypes.shape[1]
    with torch.no_grad():
        for j, source in enumerate(model.sources):
            image = data.preprocessing(data.train.image(data.train.paths.index(source.image)))
            maps = model.distance_maps(image[None])
            assert maps[0, j, source.row, source.column] < limit
            assert model.distances(image[None])[0, j] < limit
            assert data.train.labels[data.train.paths.index(source.image)] == model.prototype_classes[j]


def candidates(distances, images, vectors):
    distances = torch.tensor(distances)
    zeros = torch.zeros(distances.shape, dtype=torch.long)
    return Candidates(torch.tensor(images), distances, zeros, zeros, torch.tensor(vectors)[..., None])


def test_choice_avoids_taken_images_and_equal_vectors():
    # Both prototypes prefer image 5; the first is nearer. The second's next one has the same vector.
    options = candidates(
        [[0.1, 0.5, 0.6], [0.2, 0.3, 0.4]], [[5, 6, 7], [5, 6, 7]], [[1.0, 2.0, 3.0], [1.0, 1.0, 3.0]]
    )
    assert choose(options, torch.tensor([0, 0])).tolist() == [0, 2]
    assert choose(options, torch.tensor([0, 1])).tolist() == [0, 0]  # other classes do not compete


def test_choice_falls_back_to_the_nearest_when_nothing_is_left():
    options = candidates([[0.1], [0.2]], [[5], [5]], [[1.0], [1.0]])
    assert choose(options, torch.tensor([0, 0])).tolist() == [0, 0]

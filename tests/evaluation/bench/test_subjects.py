from __future__ import annotations

import copy

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.bench.subjects import choose_prototypes, find_subjects
from tests.evaluation.conftest import PREPROCESSING


def test_samples_are_nested_seeded_and_distinct(model) -> None:
    every = choose_prototypes(model, None, seed=3)
    assert sorted(every) == [0, 1, 2, 3]
    assert choose_prototypes(model, 2, seed=3) == every[:2]
    assert choose_prototypes(model, [3, 1]) == [3, 1]


def test_of_equal_prototypes_only_the_first_is_drawn(model) -> None:
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.prototypes[1] = twin.prototypes[0]
    assert sorted(choose_prototypes(twin)) == [0, 2, 3]


def test_prototypes_are_found_on_their_images(model, images) -> None:
    subjects = find_subjects(model, images, [0, 1, 2, 3], PREPROCESSING)
    for subject in subjects:
        for prototype in subject.prototypes:
            assert model.sources[prototype].image == subject.path
            # a prototype is a part of its image: the distance is zero
            assert model.distances(subject.image[None])[0, prototype].item() < 1e-5
        assert subject.foreground is not None
        assert int(subject.foreground.sum()) == 64  # the square
        own = int(model.prototype_classes[subject.prototypes[0]])
        assert all(int(model.prototype_classes[other]) != own for other in subject.others)


def test_prototypes_that_share_an_image_are_one_subject(model, images) -> None:
    shared = copy.deepcopy(model)
    shared.sources[1] = shared.sources[0]
    subjects = find_subjects(shared, images, [1, 2, 0], PREPROCESSING)
    assert [subject.prototypes for subject in subjects] == [(1, 0), (2,)]


def test_what_cannot_be_is_said(model) -> None:
    with pytest.raises(ProtoPFaithError, match="no prototype 9"):
        choose_prototypes(model, [0, 9])
    homeless = copy.deepcopy(model)
    homeless.sources = [None] * 4
    with pytest.raises(ProtoPFaithError, match="never projected"):
        choose_prototypes(homeless)

from __future__ import annotations

import copy

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.explainers import EXPLAINERS
from protopfaith.evaluation.metrics.sanity import (
    prototype_health,
    randomization,
    shuffled,
    stability,
)
from protopfaith.network import ProtoPNet


def test_shuffling_keeps_the_weights_but_not_their_places(model, image) -> None:
    other = shuffled(model, seed=1)
    for mine, theirs in zip(model.encoder.parameters(), other.encoder.parameters(), strict=True):
        assert torch.equal(mine.flatten().sort().values, theirs.flatten().sort().values)
    assert torch.equal(model.prototypes, other.prototypes)
    assert not torch.allclose(model.distances(image[None]), other.distances(image[None]))
    assert torch.equal(
        shuffled(model, seed=1).encoder[0].weight, other.encoder[0].weight
    )  # the same seed, the same network


def test_chance_does_not_notice_that_the_weights_are_gone(model, image, options) -> None:
    gone = randomization(EXPLAINERS["random"], model, image, [0, 2], options)
    assert torch.allclose(gone, torch.ones(2, dtype=torch.float64))
    noticed = randomization(EXPLAINERS["integrated_gradients"], model, image, [0, 2], options)
    assert float(noticed.abs().max()) < 0.95


def test_explanations_hold_still_without_noise_and_move_with_much(model, image, options) -> None:
    explainer = EXPLAINERS["integrated_gradients"]
    still, moved = (stability(explainer, model, image, [2], options, noise=noise) for noise in (0.0, 3.0))
    assert float(still) == pytest.approx(1.0)
    assert float(moved) < 0.9


def test_duplicates_collapsed_classes_and_dead_prototypes_are_found(model, image) -> None:
    sick = copy.deepcopy(model)
    with torch.no_grad():
        sick.prototypes[1] = sick.prototypes[0]
        sick.prototypes[3] = 100  # so far from all latent vectors that no image makes a difference
    batches = [torch.stack([image, image.flip(1)]), torch.randn(4, 3, 24, 24)]
    health = prototype_health(sick, batches)
    assert health.distinct.duplicates == (1,)
    assert health.collapsed == (0,)
    assert health.dead == (3,)
    well = prototype_health(model, batches)
    assert (well.distinct.duplicates, well.collapsed, well.dead) == ((), (), ())


def test_images_without_numbers_say_nothing_of_prototypes():
    model = ProtoPNet("small", ["cat", "dog"], 1, 8).eval()
    with pytest.raises(ProtoPFaithError, match="not finite; check the images"):
        prototype_health(model, [torch.full((2, 3, 32, 32), torch.nan)])

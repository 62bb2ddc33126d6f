"""A run as the server has it: its images, what it says of them, and whether it was trained again."""

from __future__ import annotations

import os

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer
from protopfaith.serve.bounds import Bounds
from protopfaith.serve.case import Case
from protopfaith.serve.networks import Network
from protopfaith.serve.question import Question
from protopfaith.serve.views import blocks_of


@pytest.fixture
def network(explainer: Explainer) -> Network:
    return Network(0, explainer, "birds")


def test_test_images_are_classified_a_few_at_a_time(network: Network) -> None:
    parts = 1
    while network.classify_some():
        parts += 1
    assert parts > 1 or len(network.test) <= 16
    pixels, _ = network.test_image(2)
    expected = network.explainer.explain(pixels, players=24, budget=64, sources=False).prediction
    assert network.predictions[2] == (expected,)


def test_only_test_images_are_given_away(network: Network) -> None:
    for bad in (-1, len(network.test), 10**9):
        with pytest.raises(ProtoPFaithError):
            network.test_image(bad)


def test_the_mean_color_is_that_of_training_images(network: Network) -> None:
    data, preprocessing = network.data, network.explainer.preprocessing
    assert data is not None
    assert preprocessing is not None
    expected = preprocessing.normalize(data.train.uint8()).mean((0, 2, 3))
    found = network.baseline("mean")
    assert isinstance(found, torch.Tensor)
    assert torch.allclose(found.float(), expected, atol=0.02)


def test_a_run_that_is_trained_again_is_told(network: Network, pixels: torch.Tensor) -> None:
    run = network.explainer.run
    assert run is not None
    case = Case(network, network.explainer.open(pixels), Question(), "me", bounds=Bounds())
    case.decide()
    assert not network.is_retrained
    assert "trained again" not in blocks_of(case)["answer"]
    before = run.model_path.stat()
    os.utime(run.model_path, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))
    try:
        assert network.is_retrained
        assert "trained again" in blocks_of(case)["answer"]
    finally:
        os.utime(run.model_path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_network_whose_images_are_gone_still_answers(explainer: Explainer, pixels: torch.Tensor) -> None:
    bare = Explainer(explainer.model, preprocessing=explainer.preprocessing)
    network = Network(0, bare, "bare")
    assert len(network.test) == 0
    assert not network.classify_some()
    case = Case(network, bare.open(pixels), Question(), "me", bounds=Bounds())
    case.decide()
    case.play()
    assert not case.has_sources()
    assert "svg" in blocks_of(case)["pictures"]
    with pytest.raises(ProtoPFaithError, match="mean color"):
        network.baseline("mean")

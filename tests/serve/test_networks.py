"""A run as the server has it: its images, what it says of them, and whether it was trained again."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import torch

from protopfaith.data import Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer
from protopfaith.serve.bounds import Bounds
from protopfaith.serve.case import Case
from protopfaith.serve.gallery import gallery_of
from protopfaith.serve.networks import Network
from protopfaith.serve.question import Question
from protopfaith.serve.run_pages import evaluation_view
from protopfaith.serve.views import blocks_of
from protopfaith.serve.worker import Worker


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
    assert not network.news
    before = run.model_path.stat()
    os.utime(run.model_path, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))
    try:
        assert "trained again" in network.news
        assert "trained again" in blocks_of(case)["answer"]
    finally:
        os.utime(run.model_path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not network.news


def test_a_run_that_is_gone_is_not_called_trained_again(network: Network, pixels: torch.Tensor) -> None:
    run = network.explainer.run
    assert run is not None
    aside = run.model_path.rename(run.model_path.with_suffix(".aside"))
    try:
        assert "no longer where it was" in network.news
        case = Case(network, network.explainer.open(pixels), Question(), "me", bounds=Bounds())
        case.decide()
        assert "no longer where it was" in blocks_of(case)["answer"]
    finally:
        aside.rename(run.model_path)


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


def test_pages_say_why_the_test_images_stay_without_an_answer(
    network: Network, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # where the traceback goes
    monkeypatch.setattr("protopfaith.serve.networks.BATCH", 2)
    network.classify_some()  # the first two are fine
    monkeypatch.setattr(network.explainer, "preprocessing", Preprocessing((8, 8), 1, (0.5,), (0.5,)))
    done = threading.Event()
    with Worker() as worker:
        worker.when_idle(network.classify_some)
        worker.when_idle(lambda: bool(done.set()))  # after it, as it has failed
        assert done.wait(300)
    left = network.predictions.count(None)
    assert 0 < left < len(network.test)
    assert "could not be classified" in gallery_of(network, "", True, "0")["count"]
    lead = evaluation_view(network, None)["lead"]
    assert f"{left} other test images could not be classified. " in lead
    assert network.stopped
    assert network.stopped in lead
    assert "being classified" not in lead

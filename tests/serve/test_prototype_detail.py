"""A prototype in detail."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import httpx
import pytest
import torch

from protopfaith.explanation import Explainer
from protopfaith.network import ProtoPNet
from protopfaith.serve.networks import Network
from protopfaith.serve.prototype_detail import MOST_CLASSES, NEAREST, nearest_of, weight_bars
from protopfaith.serve.server import Server


def test_a_prototype_in_detail(settled: tuple[httpx.Client, str]) -> None:
    client, case = settled
    html = client.post(f"/case/{case}/prototype", json={"prototype": 3}).json()["html"]
    for said in ("Prototype 3", "its source image", "what it sees there", "nearest training", "Its weight"):
        assert said in html
    for bad in (-1, 10**6, "3", None, True):
        assert client.post(f"/case/{case}/prototype", json={"prototype": bad}).status_code == 400


def test_a_prototype_that_only_resembles_its_image_says_so(
    settled: tuple[httpx.Client, str], served: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, case = settled
    model = served.state.networks[0].model
    sources = list(model.sources)
    assert sources[3] is not None
    sources[3] = replace(sources[3], exact=False)
    monkeypatch.setattr(model, "sources", sources)
    html = client.post(f"/case/{case}/prototype", json={"prototype": 3}).json()["html"]
    assert "It is no part of any training image found here" in html
    assert "the training image nearest to it" in html
    assert "its source image" not in html


def test_its_nearest_patches_are_those_of_all_training_images(explainer: Explainer) -> None:
    network = Network(0, explainer, "birds")
    found = nearest_of(network)
    assert found is not None
    assert nearest_of(network) is found  # surveyed once
    data, preprocessing = network.data, explainer.preprocessing
    assert data is not None
    assert preprocessing is not None
    with torch.no_grad():
        distances = network.model.distances(preprocessing.normalize(data.train.uint8()))
    for prototype, patches in enumerate(found.nearest):
        expected = distances[:, prototype].sort().values[:NEAREST]
        assert torch.allclose(torch.tensor([one.distance for one in patches]), expected, atol=1e-4)


def test_its_weights_are_those_of_the_last_layer_the_largest_first() -> None:
    torch.manual_seed(0)
    model = ProtoPNet("small", MOST_CLASSES + 3, 1, 8).eval()
    with torch.no_grad():
        model.classifier.weight.normal_()
    network = Network(0, Explainer(model), "many")
    bars = weight_bars(network, 4)
    column = cast(ProtoPNet, network.model).classifier.weight[:, 4]
    order = column.abs().argsort(descending=True)[:MOST_CLASSES].tolist()
    assert [row.label for row in bars.rows] == [str(label) for label in order]
    assert [row.text for row in bars.rows] == [f"{column[label]:+.3g}" for label in order]
    assert "3 more classes" in bars.caption

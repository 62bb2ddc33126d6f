"""Test images to choose from: which ones, page after page."""

from __future__ import annotations

import re

import httpx
import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer
from protopfaith.serve.gallery import gallery_of
from protopfaith.serve.networks import Network
from protopfaith.serve.server import Server
from tests.serve.conftest import wait_for


def test_the_gallery_filters(client: httpx.Client, served: Server) -> None:
    everything = client.get("/gallery?run=0").json()
    assert len(everything["classes"]) == 8
    one = client.get("/gallery?run=0&label=2").json()["html"]
    name = everything["classes"][2]
    assert one.count('class="thumb"') == one.count(f"<span>{name}</span>")
    network = served.state.networks[0]
    wait_for(lambda: None not in network.predictions)
    wrong = client.get("/gallery?run=0&wrong=1").json()["html"]
    labels = network.test.labels.tolist()  # type: ignore[union-attr]
    expected = sum(p != (t,) for p, t in zip(network.predictions, labels, strict=True))
    assert wrong.count('class="thumb"') == min(expected, 48)


def indices(html: str) -> list[int]:
    return [int(number) for number in re.findall(r'data-index="(\d+)"', html)]


def test_pages_follow_each_other_until_all_images_were_shown(
    explainer: Explainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("protopfaith.serve.gallery.PAGE", 5)
    network = Network(0, explainer, "birds")
    seen: list[int] = []
    start: int | None = 0
    while start is not None:
        page = gallery_of(network, "", False, str(start))
        assert 0 < len(indices(page["html"])) <= 5
        seen += indices(page["html"])
        start = page["next"]
    assert seen == list(range(len(network.test)))
    assert page["count"] == f"{len(seen)} images"


def test_what_is_not_classified_yet_is_not_called_wrong(explainer: Explainer) -> None:
    network = Network(0, explainer, "birds")
    network.predictions[0] = (int(network.test.labels[0]) + 1,)  # type: ignore[union-attr]
    page = gallery_of(network, "", True, "0")
    assert indices(page["html"]) == [0]
    assert page["count"] == f"1 image so far; {len(network.test) - 1} are not classified yet"


def test_a_gallery_without_images_says_why(explainer: Explainer) -> None:
    bare = Network(0, Explainer(explainer.model, preprocessing=explainer.preprocessing), "bare")
    page = gallery_of(bare, "", False, "0")
    assert "give --root" in page["html"]
    assert page["next"] is None


@pytest.mark.parametrize(("label", "start"), [("8", "0"), ("x", "0"), ("", "-1"), ("", "1" * 10), ("", "²")])
def test_it_is_asked_for_by_numbers_alone(explainer: Explainer, label: str, start: str) -> None:
    with pytest.raises(ProtoPFaithError, match="by numbers"):
        gallery_of(Network(0, explainer, "birds"), label, False, start)

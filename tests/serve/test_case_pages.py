"""Everything that can be asked about a case, without a browser."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import torch

from protopfaith.serve.server import Server
from tests.serve.conftest import follow, found

SQUARE = [[0.1, 0.1], [0.5, 0.1], [0.5, 0.5], [0.1, 0.5]]


def changed(settled: tuple[httpx.Client, str], message: dict[str, Any]) -> str:
    client, case = settled
    answer = client.post(f"/case/{case}/change", json=message)
    assert answer.status_code == 200, answer.text
    return answer.json()["case"]


def test_against_another_class(served: Server, settled: tuple[httpx.Client, str]) -> None:
    first = found(served, settled[1]).decision
    assert first is not None
    new = found(served, changed(settled, {"target": first.target, "versus": first.rival}))
    assert new.decision is not None
    assert new.decision.versus == first.rival
    assert new.decision.output == "versus"
    page = settled[0].get(f"/case/{new.id}").text
    assert "and not" in page
    for bad in ({"versus": 99}, {"versus": first.target, "target": first.target}, {"path": "/etc"}):
        assert settled[0].post(f"/case/{settled[1]}/change", json=bad).status_code == 400


@pytest.mark.parametrize(
    ("message", "count"),
    [({"players": "windows:16"}, 9), ({"drawn": [SQUARE]}, 2), ({"baseline": "blur"}, 36)],
)
def test_other_regions_and_baselines(
    served: Server, settled: tuple[httpx.Client, str], message: dict[str, Any], count: int
) -> None:
    name = changed(settled, message)
    follow(settled[0], name) if count < 10 else None
    case = found(served, name)
    assert case.resumable is not None
    assert len(case.resumable.players) == count
    if count < 10:  # few regions are played exactly
        assert case.result is not None
        assert case.result.precision == 0


def test_superpixels_and_the_mean_color(served: Server, settled: tuple[httpx.Client, str]) -> None:
    case = found(served, changed(settled, {"players": "superpixels:30", "baseline": "mean"}))
    assert case.resumable is not None
    assert "superpixel" in case.resumable.players.description
    assert case.resumable.game.baseline.std((1, 2)).max() < 1e-6


def test_the_same_question_is_the_same_case(served: Server, settled: tuple[httpx.Client, str]) -> None:
    first = changed(settled, {"baseline": "blur"})
    assert changed(settled, {"baseline": "blur"}) == first
    with httpx.Client(base_url=served.address, timeout=120) as other:
        other.get("/")
        theirs = other.post(f"/case/{settled[1]}/change", json={"baseline": "blur"}).json()["case"]
    assert theirs != first


def test_the_same_image_under_another_network(served: Server, settled: tuple[httpx.Client, str]) -> None:
    client, name = settled
    url = client.post(f"/case/{name}/beside", json={"run": 1}).json()["url"]
    page = client.get(url).text
    assert page.count('class="case"') == 2
    other = found(served, url.rpartition("/")[2])
    assert other.network is served.state.networks[1]
    assert torch.equal(other.picture.pixels, found(served, name).picture.pixels)
    assert client.post(f"/case/{name}/beside", json={"run": "../x"}).status_code == 400


def test_the_other_network_is_asked_the_same(served: Server, settled: tuple[httpx.Client, str]) -> None:
    client, name = settled
    decision = found(served, name).decision
    assert decision is not None
    rival = (decision.target + 1) % len(decision.probabilities)
    url = client.post(f"/case/{name}/change", json={"versus": rival, "baseline": "blur"}).json()["url"]
    changed = url.rpartition("/")[2]
    beside = client.post(f"/case/{changed}/beside", json={"run": 1}).json()["url"]
    asked = found(served, beside.rpartition("/")[2]).question
    assert (asked.target, asked.versus, asked.baseline) == (decision.target, rival, "blur")

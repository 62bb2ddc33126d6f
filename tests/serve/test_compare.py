"""Explainers side by side, as a page asks for them."""

from __future__ import annotations

import re

import httpx
import pytest

from protopfaith.evaluation import default_explainers
from protopfaith.serve.server import Server
from tests.serve.conftest import found


def test_explainers_side_by_side(served: Server, settled: tuple[httpx.Client, str]) -> None:
    client, name = settled
    decision = found(served, name).decision
    assert decision is not None
    prototype = decision.named[0]
    message = {"prototype": prototype, "explainers": ["ours", "protopnet", "random", "dasp"]}
    html = client.post(f"/case/{name}/compare", json=message).json()["html"]
    scores = [float(score) for score in re.findall(r'class="score">(\S+) <small>AOPC</small>', html)]
    best = ["best here" in card for card in html.split('<article class="card">')[1:]]
    assert len(scores) == len(best) == 4
    assert best.count(True) == 1
    assert scores[best.index(True)] == min(scores) < max(scores)
    for bad in ([], ["nothing"], "ours", None):
        answer = client.post(f"/case/{name}/compare", json={"prototype": prototype, "explainers": bad})
        assert answer.status_code == 400
    other = next(p for p in range(16) if p not in decision.named)
    answer = client.post(f"/case/{name}/compare", json={"prototype": other, "explainers": ["ours"]})
    assert answer.status_code == 400


@pytest.mark.parametrize("explainer_name", default_explainers())
def test_every_explainer_can_be_chosen(
    served: Server, settled: tuple[httpx.Client, str], explainer_name: str
) -> None:
    client, name = settled
    decision = found(served, name).decision
    assert decision is not None
    message = {"prototype": decision.named[0], "explainers": [explainer_name]}
    html = client.post(f"/case/{name}/compare", json=message).json()["html"]
    assert "AOPC</small>" in html

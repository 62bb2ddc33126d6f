"""Everything that can be asked about a case, without a browser."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import torch

from protopfaith.evaluation import default_explainers
from protopfaith.explanation import Explainer, load_explanation
from protopfaith.serve.case import Case
from protopfaith.serve.server import Server
from tests.serve.test_app import ask, follow

SQUARE = [[0.1, 0.1], [0.5, 0.1], [0.5, 0.5], [0.1, 0.5]]


@pytest.fixture(scope="module")
def settled(served: Server) -> tuple[httpx.Client, str]:
    """A visitor with a case whose map is there, and stopped."""
    client = httpx.Client(base_url=served.address, timeout=120)
    case = ask(client, 1)
    client.post(f"/case/{case}/continue", json={"precision": 0.5})
    follow(client, case)
    return client, case


def found(served: Server, name: str) -> Case:
    case = served.desk.find(name)
    assert case is not None
    return case


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
    assert case.sittings is not None
    assert len(case.sittings.players) == count
    if count < 10:  # few regions are played exactly
        assert case.result is not None
        assert case.result.precision == 0


def test_superpixels_and_the_mean_color(served: Server, settled: tuple[httpx.Client, str]) -> None:
    case = found(served, changed(settled, {"players": "superpixels:30", "baseline": "mean"}))
    assert case.sittings is not None
    assert "superpixel" in case.sittings.players.description
    assert case.sittings.game.baseline.std((1, 2)).max() < 1e-6


def test_the_same_question_is_the_same_case(served: Server, settled: tuple[httpx.Client, str]) -> None:
    first = changed(settled, {"baseline": "blur"})
    assert changed(settled, {"baseline": "blur"}) == first
    with httpx.Client(base_url=served.address, timeout=120) as other:
        other.get("/")
        theirs = other.post(f"/case/{settled[1]}/change", json={"baseline": "blur"}).json()["case"]
    assert theirs != first


def test_a_prototype_in_detail(settled: tuple[httpx.Client, str]) -> None:
    client, case = settled
    html = client.post(f"/case/{case}/prototype", json={"prototype": 3}).json()["html"]
    for said in ("Prototype 3", "its source image", "what it sees there", "nearest training", "Its weight"):
        assert said in html
    for bad in (-1, 10**6, "3", None, True):
        assert client.post(f"/case/{case}/prototype", json={"prototype": bad}).status_code == 400


def test_explainers_side_by_side(served: Server, settled: tuple[httpx.Client, str]) -> None:
    client, name = settled
    decision = found(served, name).decision
    assert decision is not None
    prototype = decision.named[0]
    message = {"prototype": prototype, "explainers": ["ours", "protopnet", "random", "dasp"]}
    html = client.post(f"/case/{name}/compare", json=message).json()["html"]
    assert html.count("AOPC</small>") == 4
    assert html.count("best here") == 1
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


def test_saved_files_are_those_of_explain(
    served: Server, settled: tuple[httpx.Client, str], explainer: Explainer, tmp_path: Path
) -> None:
    client, name = settled
    assert client.get(f"/case/{name}/saved/report.html").status_code == 404
    html = client.post(f"/case/{name}/save").json()["html"]
    assert html.count("<a ") == 5
    archive = zipfile.ZipFile(io.BytesIO(client.get(f"/case/{name}/saved/case.zip").content))
    archive.extractall(tmp_path)
    assert sorted(archive.namelist()) == [
        "explanation.json",
        "explanation.npz",
        "figure.png",
        "report.html",
    ]
    case = found(served, name)
    assert case.result is not None
    saved = load_explanation(tmp_path / "explanation")
    pixels, _ = case.network.test_image(1)
    mine = explainer.explain(pixels, players=8, budget=case.result.evaluations, source_budget=512)
    assert torch.allclose(saved.probabilities, mine.probabilities)
    assert saved.evaluations == mine.evaluations
    assert [one.prototype for one in saved.evidence] == [one.prototype for one in mine.evidence]
    side, theirs = saved.evidence[0].source_side, mine.evidence[0].source_side
    assert side is not None
    assert theirs is not None
    assert torch.allclose(side.regions.values, theirs.regions.values)
    mine.save(tmp_path / "mine")
    ours, theirs_json = (json.loads((tmp_path / f"{n}.json").read_text()) for n in ("explanation", "mine"))
    assert ours.keys() == theirs_json.keys()
    with np.load(tmp_path / "explanation.npz") as a, np.load(tmp_path / "mine.npz") as b:
        assert set(a.files) == set(b.files)
    report = client.get(f"/case/{name}/saved/report.html")
    assert report.headers["Content-Disposition"].startswith("attachment")
    assert client.get(f"/case/{name}/saved/..%2f..%2fx").status_code == 404
    assert list(served.folder.path.iterdir()) == []


def test_hidden_regions_come_back_with_the_link(served: Server, settled: tuple[httpx.Client, str]) -> None:
    client, name = settled
    sittings = found(served, name).sittings
    assert sittings is not None
    count = len(sittings.players)
    client.post(f"/case/{name}/hide", json={"regions": [2, 5], "count": count})
    assert 'data-hidden="[2, 5]"' in client.get(f"/case/{name}").text
    client.post(f"/case/{name}/hide", json={"regions": [], "count": count})
    assert 'data-hidden="[]"' in client.get(f"/case/{name}").text


def test_the_same_image_under_another_network(served: Server, settled: tuple[httpx.Client, str]) -> None:
    client, name = settled
    url = client.post(f"/case/{name}/beside", json={"run": 1}).json()["url"]
    page = client.get(url).text
    assert page.count('class="case"') == 2
    other = found(served, url.rpartition("/")[2])
    assert other.network is served.desk.networks[1]
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

"""The explorer with a network that decides on several findings: its pages, and in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import torch

from protopfaith.evaluation.findings import write_findings
from protopfaith.evaluation.metrics.findings import judge_findings
from protopfaith.serve.bounds import Bounds
from protopfaith.serve.case import Case
from protopfaith.serve.finding_pages import CELLS, finding_cell, finding_evaluation, images_of
from protopfaith.serve.gallery import gallery_of
from protopfaith.serve.networks import Network
from protopfaith.serve.question import Question
from protopfaith.serve.run_pages import reliability_picture
from protopfaith.serve.server import Server
from protopfaith.serve.views import blocks_of, whatif_block
from protopfaith.training import load_recipe, train
from tests.serve.conftest import Visit, running

SMALL = [
    "data.size=[32, 32]",
    "data.options={train: 32, validation: 32, test: 32}",
    "model.prototype_channels=8",
    "optimization.batch_size=16",
    "schedule.cycles=1",
    "schedule.pretraining.epochs=0",
    "schedule.warmup.epochs=0",
    "schedule.joint.epochs=1",
    "schedule.classifier.epochs=1",
]


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server with a network of six findings."""
    folder = tmp_path_factory.mktemp("findings") / "run"
    train(load_recipe("birds_multilabel", SMALL), folder, progress=False)
    with running([folder]) as server:
        yield server


@pytest.fixture
def network(findings: Server) -> Network:
    network = Network(0, findings.state.networks[0].explainer, "findings")
    while network.classify_some():
        pass
    return network


@pytest.fixture
def case(network: Network) -> Case:
    pixels, known = network.test_image(1)
    made = Case(
        network, network.explainer.open(pixels), Question(target=2), "me", bounds=Bounds(), known=known
    )
    made.decide()
    return made


def test_every_finding_has_a_card_and_soon_a_map(case: Case) -> None:
    names = case.network.class_names
    first = blocks_of(case)["findings"]
    assert all(name in first for name in names)
    assert '<svg class="picture' not in first
    case.play()
    blocks = blocks_of(case)
    assert blocks["findings"].count('class="picture pointable"') == len(names)
    assert blocks["findings"].count("choose-finding") == len(names) - 1  # the one explained is no choice
    assert f"<h1>{names[2]}: {case.findings[2].verdict}</h1>" in blocks["answer"]
    assert blocks["tree"] == ""
    there = case.known is not None and case.known.findings[2]
    assert f"{names[2]} is {'present' if there else 'absent'}" in blocks["answer"]


def test_hiding_tells_what_becomes_of_findings(case: Case) -> None:
    case.play()
    assert case.shown is not None
    found = case.without(case.shown, (0, 1))
    html = whatif_block(case, found)
    assert f"Without them, {case.findings[2].name} goes from" in html
    for number, one in enumerate(case.findings):
        if number != 2 and one.rule.verdict(float(found.after[number])) != one.verdict:
            assert f"{one.name} goes from" in html
    everything = case.without(case.shown, tuple(range(len(case.shown.resumable.players))))
    assert case.decision is not None
    empty = case.decision.empty_logits.sigmoid()
    assert everything.after.tolist() == pytest.approx(empty.tolist(), abs=1e-4)
    assert everything.predicted.tolist() == pytest.approx(empty.tolist(), abs=1e-3)  # type: ignore[union-attr]


def test_numbers_of_a_finding_count_every_image_once(network: Network) -> None:
    total = len(network.test)
    for finding in range(len(network.class_names)):
        images = [one for pair in CELLS.values() for one in images_of(network, (finding, *pair))]
        assert sorted(images) == list(range(total))
    wrong = {
        one
        for finding in range(len(network.class_names))
        for pair in ((1, 0), (0, 1))
        for one in images_of(network, (finding, *pair))
    }
    assert wrong == {one for one in range(total) if network.is_wrong(one)}
    assert f"{total - len(wrong)} of {total}" in finding_evaluation(network, None)["lead"]


def test_answers_are_those_of_thresholds(network: Network) -> None:
    pixels, _ = network.test_image(3)
    found = network.explainer.explain(pixels, players=16, budget=64, sources=False).findings
    over = [number for number, one in enumerate(found) if one.probability >= one.rule.threshold]
    assert network.predictions[3] == tuple(over)


@pytest.mark.parametrize(
    "asked",
    [{}, {"finding": "99", "there": "1", "found": "1"}, {"finding": "0", "there": "2", "found": "x"}],
)
def test_numbers_that_are_not_there_are_not_asked_for(network: Network, asked: dict[str, str]) -> None:
    assert finding_cell(network, asked) is None


def test_the_gallery_knows_findings(network: Network) -> None:
    shown = gallery_of(network, "1", wrong=False, start="0")
    expected = [i for i in range(len(network.test)) if 1 in network.shows(i)]
    assert [int(one) for one in re.findall(r'data-index="(\d+)"', shown["html"])] == expected
    assert shown["kind"] == "Finding"
    wrong = gallery_of(network, "", wrong=True, start="0")
    assert wrong["html"].count("data-index") == sum(map(network.is_wrong, range(len(network.test))))


def test_findings_are_not_compared_with_one_another(findings: Server) -> None:
    with httpx.Client(base_url=findings.address, timeout=120) as client:
        client.get("/")
        url = client.post("/ask/test", json={"run": 0, "index": 0}).json()["url"]
        assert "and not" not in client.get(url).text
        answer = client.post(f"{url}/change", json={"target": 0, "versus": 1})
        assert "one by one" in answer.text
        page = client.get("/evaluation/0?finding=0&there=1&found=1").text
        assert "there and found" in page


def test_in_a_browser(browser: Any, findings: Server, tmp_path: Any) -> None:
    """Ask, choose another finding, hide a region, open a prototype, save."""
    visit = Visit(browser, findings.address)
    page = visit.page
    visit.choose(1)
    visit.stop()
    assert page.locator(".finding").count() == 6
    assert page.locator(".finding .picture").count() == 6
    other = page.locator(".choose-finding").nth(2).inner_text()
    page.locator(".choose-finding").nth(2).click()
    page.locator("h1", has_text=f"{other}: ").wait_for()
    page.locator(".pictures .pointable").wait_for()
    visit.stop()
    page.locator(".pictures .pointable").click(position={"x": 40, "y": 40})
    page.locator(".whatif-answer .lead", has_text=f"{other} goes from").wait_for()
    page.locator(".card-open").first.click()
    page.locator(".portrait-answer", has_text="it stands for").wait_for()
    page.keyboard.press("Escape")
    report = visit.save_report(tmp_path / "report.html")
    assert report.locator("h1").inner_text() == page.locator("h1").inner_text()
    assert visit.trouble == []
    visit.context.close()


def test_the_evaluation_page_shows_how_sure_the_network_may_be(findings: Server, network: Network) -> None:
    run = network.explainer.run
    assert run is not None
    with httpx.Client(base_url=findings.address, timeout=120) as client:
        client.get("/")
        assert f"protopfaith evaluate {run.folder.name}" in client.get("/evaluation/0").text
        found = judge_findings(torch.rand(20, 6), torch.eye(20, 6), network.class_names, resamples=10)
        write_findings(run.folder / "evaluation", "test", found)
        page = client.get("/evaluation/0").text
    assert f'src="{reliability_picture(network)}"' in page
    assert "have the finding" in page

"""The report as a file, and in a real browser where there is one."""

from __future__ import annotations

import html
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from protopfaith.explanation import Explanation, SecondBaseline
from protopfaith.explanation.regions import Agreement
from protopfaith.show.report import render_report
from protopfaith.show.wording.numbers import percent

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def island(page: str) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))  # type: ignore[union-attr]


def test_a_page_is_self_contained(explanation: Explanation) -> None:
    page = render_report(explanation)
    assert not re.search(r"https?://|//[a-z]+\.", page)
    for link in re.findall(r'(?:src|href)="([^"]*)"', page):
        assert link.startswith("data:")
    assert "a &lt;bird&gt; &amp; more" in page
    assert "<bird>" not in page


def test_names_are_escaped_exactly_once(explanation: Explanation) -> None:
    names = ("a <b> & c", *explanation.class_names[1:])
    page = render_report(replace(explanation, class_names=names, target=0, versus=1))
    assert "a <b>" not in page
    assert "&amp;lt;" not in page
    assert "a &lt;b&gt; &amp; c" in page
    assert island(page)["maps"][0]["minus"] == "It speaks against a <b> & c."  # the script sets it as text


def test_the_numbers_in_it_are_those_of_the_explanation(explanation: Explanation) -> None:
    data = island(render_report(explanation))
    mine = explanation.class_map
    assert torch.allclose(torch.tensor(data["maps"][0]["values"]).double(), mine.evidence, rtol=1e-4)
    assert torch.allclose(torch.tensor(data["maps"][0]["errors"]).double(), mine.standard_errors, rtol=1e-4)
    one = data["maps"][1]  # of the first prototype on the test image: similarity, so minus the distance
    assert torch.allclose(
        torch.tensor(one["values"]).double(), -explanation.evidence[0].test.values, rtol=1e-4
    )
    labels = data["labels"][data["maps"][0]["labels"]]
    runs = labels["runs"]
    pixels = [player for player, length in zip(runs[::2], runs[1::2], strict=True) for _ in range(length)]
    assert pixels == mine.players.labels.flatten().tolist()
    assert (labels["height"], labels["width"]) == tuple(mine.players.labels.shape)


def test_no_placeholder_is_left(explanation: Explanation) -> None:
    page = render_report(explanation)
    text = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    assert not re.search(r"[{}]|\$[a-z]", text)
    assert f"seed {explanation.settings['seed']}" in text
    assert f"{explanation.network['prototypes']} prototypes" in text


def test_it_says_how_far_it_can_be_trusted(explanation: Explanation) -> None:
    page = html.unescape(render_report(explanation))
    for words in (
        "How faithful is this?",
        f"{explanation.evaluations:,} evaluations",
        explanation.method,
        "add up",
        "Known limits",
        percent(explanation.precision),
    ):
        assert words in page
    missed = replace(explanation, precision_asked=0.001, reached=False)
    assert "was not reached" in render_report(missed)
    unknown = replace(
        explanation,
        method="dasp",
        class_map=replace(
            explanation.class_map, standard_errors=torch.full_like(explanation.class_map.values, torch.nan)
        ),
    )
    assert "gives no standard errors" in render_report(unknown)
    other = SecondBaseline("blur", explanation.class_map, Agreement(0.3, 0.5, 4), {})
    page = render_report(replace(explanation, second=other))
    assert "correlates with this one by 0.30" in page
    assert "The two disagree" in page


def test_duplicates_are_grayed(explanation: Explanation) -> None:
    first, second = explanation.evidence
    marked = replace(second, duplicate_of=first.prototype, duplicate_kind="identical")
    page = render_report(replace(explanation, evidence=(first, marked)))
    assert page.count('class="prototype duplicate"') == 1
    assert f"identical to prototype {first.prototype}" in page


def test_without_sources_and_with_two_classes(explanation: Explanation) -> None:
    alone = tuple(replace(one, source_side=None) for one in explanation.evidence)
    asked = replace(explanation, evidence=alone, versus=0, decomposition=explanation.runner_up)
    page = render_report(asked)
    assert "On its source image" not in page
    assert "and not" in page


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_in_a_browser(explanation: Explanation, tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api")
    path = explanation.report(tmp_path / "report.html")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        page = browser.new_page()
        trouble: list[str] = []
        requests: list[str] = []
        page.on("console", lambda message: trouble.append(message.text))
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())

        heat = page.locator(".hoverable .ours").first
        before = float(heat.evaluate("e => getComputedStyle(e).opacity"))
        page.locator("#opacity").fill("20")
        after = float(heat.evaluate("e => getComputedStyle(e).opacity"))
        assert before == pytest.approx(0.85)
        assert after == pytest.approx(0.2)

        picture = page.locator(".hoverable").first
        frame = picture.bounding_box()
        players = explanation.class_map.players
        for player in (0, len(players) - 1):
            _, row, column = ((players.centers[player] + 0.5) / 48).tolist()
            page.mouse.move(frame["x"] + column * frame["width"], frame["y"] + row * frame["height"])
            said = page.locator("#tip").inner_text()
            value, error = re.match(rf"Region {player}: ([+-][\d.]+) ± ([\d.]+)", said).groups()  # type: ignore[union-attr]
            assert float(value) == pytest.approx(float(explanation.class_map.evidence[player]), abs=6e-3)
            assert float(error) == pytest.approx(
                float(explanation.class_map.standard_errors[player]), abs=6e-3
            )
        page.mouse.move(2, 2)
        assert not page.locator("#tip").is_visible()

        hatch = page.locator(".hatch").first
        if hatch.count():
            page.locator("#hatching").uncheck()
            assert not hatch.is_visible()
        assert page.pdf(format="A4").startswith(b"%PDF")
        browser.close()
    assert trouble == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []

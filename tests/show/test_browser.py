"""What a reader sees, in a real browser where there is one: widths, dark mode, pointer, keyboard, print."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from protopfaith.evaluation.results import Faithfulness
from protopfaith.explanation import Explainer, Explanation, explain, explain_prototypes
from protopfaith.network import ProtoTree
from protopfaith.show.catalog import render_catalog
from protopfaith.show.faithfulness.figures import scores_figure
from protopfaith.show.faithfulness.page import write_faithfulness
from protopfaith.show.index import write_index

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
PATIENCE = 240_000  # milliseconds; the usual half a minute may be too little on a busy machine
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS), timeout=PATIENCE)
        yield browser
        browser.close()


class Visit:
    """A page in a window, and whatever went wrong or was asked of others meanwhile."""

    def __init__(self, browser: Any, path: Path, width: int = 1200, scheme: str = "light"):
        self.trouble: list[str] = []
        self.page = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme
        ).new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda message: self.trouble.append(message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("request", self._note)
        self.page.goto(path.as_uri())

    def _note(self, request: Any) -> None:
        if not request.url.startswith(("file:", "data:")):
            self.trouble.append(request.url)


@pytest.fixture(scope="module")
def report(explanation: Explanation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return explanation.report(tmp_path_factory.mktemp("report") / "report.html")


def luminance(color: str) -> float:
    """Relative luminance of rgb(...), as contrast is defined (WCAG 2)."""
    parts = [int(number) / 255 for number in re.findall(r"\d+", color)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 800, 1200])
def test_it_fits_and_can_be_read(browser: Any, report: Path, width: int, scheme: str) -> None:
    visit = Visit(browser, report, width, scheme)
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    script = "name => getComputedStyle(document.body)[name]"
    paper = luminance(visit.page.evaluate(script, "backgroundColor"))
    assert (paper < 0.1) is (scheme == "dark")
    for selector in (".lead", ".note", ".kicker", ".verdict p", "figcaption", ".bars th"):
        ink = luminance(visit.page.locator(selector).first.evaluate("e => getComputedStyle(e).color"))
        low, high = sorted((ink, paper))
        assert (high + 0.05) / (low + 0.05) >= 4.5, selector
    assert visit.trouble == []


def test_pointing_tells_the_value(browser: Any, report: Path, explanation: Explanation) -> None:
    visit = Visit(browser, report)
    picture = visit.page.locator(".pointable").first
    frame = picture.bounding_box()
    mine = explanation.class_map
    for player in (0, len(mine.players) - 1):
        _, row, column = ((mine.players.centers[player] + 0.5) / 48).tolist()
        visit.page.mouse.move(frame["x"] + column * frame["width"], frame["y"] + row * frame["height"])
        said = visit.page.locator("#tip").inner_text()
        value, error = re.match(rf"Region {player}: ([+-][\d.]+) ± ([\d.]+)", said).groups()  # type: ignore[union-attr]
        assert float(value) == pytest.approx(float(mine.evidence[player]), rel=2e-3, abs=6e-3)
        assert float(error) == pytest.approx(float(mine.standard_errors[player]), rel=2e-3, abs=6e-3)
    visit.page.mouse.move(2, 2)
    assert not visit.page.locator("#tip").is_visible()
    assert visit.trouble == []


def test_arrow_keys_walk_through_the_regions(browser: Any, report: Path) -> None:
    visit = Visit(browser, report)
    visit.page.keyboard.press("Tab")  # the first stop may be any control: go on to the map
    for _ in range(12):
        if visit.page.evaluate("document.activeElement.matches('.pointable')"):
            break
        visit.page.keyboard.press("Tab")
    before = visit.page.locator("#tip").inner_text()
    visit.page.keyboard.press("ArrowLeft")
    after = visit.page.locator("#tip").inner_text()
    assert before.startswith("Region ")
    assert after.startswith("Region ")
    assert before != after
    visit.page.keyboard.press("Escape")
    assert not visit.page.locator("#tip").is_visible()


def test_colors_can_be_faded_and_undecided_regions_hatched(browser: Any, report: Path) -> None:
    visit = Visit(browser, report)
    heat = visit.page.locator(".heat").first
    visit.page.locator("#opacity").fill("20")
    assert float(heat.evaluate("e => getComputedStyle(e).opacity")) == pytest.approx(0.2)
    hatch = visit.page.locator(".hatch").first
    assert hatch.evaluate("e => getComputedStyle(e).display") == "none"
    visit.page.locator("#hatching").check()
    assert hatch.evaluate("e => getComputedStyle(e).display") != "none"
    photograph = visit.page.locator(".pointable > use").first
    assert photograph.evaluate("e => getComputedStyle(e).filter") == "none"  # in its own colors, unless asked
    visit.page.locator("#gray").check()
    assert "grayscale" in photograph.evaluate("e => getComputedStyle(e).filter")
    assert visit.trouble == []


def test_it_can_be_printed(browser: Any, report: Path) -> None:
    assert Visit(browser, report).page.pdf(format="A4").startswith(b"%PDF")


def test_every_picture_has_words_for_those_who_cannot_see_it(browser: Any, report: Path) -> None:
    visit = Visit(browser, report)
    pictures = visit.page.locator(".picture")
    labels = [pictures.nth(i).get_attribute("aria-label") for i in range(pictures.count())]
    assert labels
    assert all(labels)


def test_cases_can_be_filtered(browser: Any, explanation: Explanation, tmp_path: Path) -> None:
    from dataclasses import replace

    for name in ("first", "second"):
        replace(explanation, name=name).save(tmp_path / name / "explanation")
    cases = [tmp_path / "first", tmp_path / "second"]
    visit = Visit(browser, write_index(tmp_path / "index.html", cases, []))
    visit.page.locator("#filter-text").fill("SECOND")
    assert visit.page.locator("article:visible").count() == 1
    assert visit.page.locator("#filter-count").inner_text() == "1 shown"
    assert visit.trouble == []


def test_the_switch_shows_one_map_at_a_time(browser: Any, report: Path, explanation: Explanation) -> None:
    visit = Visit(browser, report)
    choices = visit.page.locator(".choice")
    assert choices.count() == 1 + len(explanation.other_maps)
    for place in range(choices.count()):
        visit.page.locator(".switch label").nth(place).click()
        assert [choices.nth(i).is_visible() for i in range(choices.count())].index(True) == place
        assert visit.page.locator(".choice:visible").count() == 1


@pytest.fixture(scope="module")
def catalog_page(explainer: Explainer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("catalog") / "prototypes.html"
    path.write_text(
        render_catalog(explain_prototypes(explainer, players=24, budget=64, nearest=3)), encoding="utf-8"
    )
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_prototypes_fits_into_400_pixels(browser: Any, catalog_page: Path, scheme: str) -> None:
    visit = Visit(browser, catalog_page, 400, scheme)
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 400
    assert visit.trouble == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_of_explainers_fits_into_400_pixels(
    browser: Any, judgment: Faithfulness, scheme: str
) -> None:
    page = write_faithfulness(judgment.page, judgment, {"Scores": scores_figure(judgment)}, "Who is right?")
    visit = Visit(browser, page, 400, scheme)
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 400
    assert visit.trouble == []


def test_long_names_overprint_nothing(browser: Any, explanation: Explanation, tmp_path: Path) -> None:
    from dataclasses import replace

    names = tuple(f"{name}_with_a_name_that_has_no_end_and_no_space" for name in explanation.class_names)
    path = replace(explanation, class_names=names, name=80 * "x").report(tmp_path / "long.html")
    for width in (400, 1200):
        assert Visit(browser, path, width).page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [400, 1200])
def test_the_way_through_a_tree_fits(browser: Any, tmp_path: Path, width: int) -> None:
    torch.manual_seed(0)
    tree = ProtoTree("small", [f"class {i}" for i in range(8)], depth=2, prototype_channels=8).eval()
    tree.leaves.data.zero_()[:, 0] = 40  # so that most probabilities take many letters
    page = explain(tree, torch.rand(3, 32, 32), players=16, budget=32, sources=False).report(
        tmp_path / "report.html"
    )
    visit = Visit(browser, page, width)
    assert "less than 0.01%" in visit.page.locator(".leaf").inner_text()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    assert visit.trouble == []

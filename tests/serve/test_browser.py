"""The explorer in a real browser: what a person can do, at several widths, with pointer and keyboard."""

from __future__ import annotations

import io
import json
import re
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from protopfaith.evaluation.results import Faithfulness
from protopfaith.explanation import explain_prototypes
from protopfaith.serve.case import Case
from protopfaith.serve.server import Server, opened
from protopfaith.show.faithfulness.figures import scores_figure
from protopfaith.show.faithfulness.page import write_faithfulness
from tests.serve.conftest import BOUNDS, Visit, wait_for
from tests.show.conftest import judgment  # noqa: F401
from tests.show.test_browser import PATIENCE, luminance

ENDLESS = 1e-4  # a precision that takes longer than any test
FINEST = "e => { e.value = 6; e.dispatchEvent(new Event('change')); }"


def picture() -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8)).save(
        buffer, "PNG"
    )
    return buffer.getvalue()


def test_a_test_image_is_decided_mapped_and_sharpened(visit: Visit) -> None:
    visit.choose(1)
    page = visit.page
    assert page.locator("h1").inner_text().endswith("?")
    assert "The network " in page.locator(".lead").first.inner_text()
    assert page.locator("[data-block=bars] .bars tr").count() == 5
    first = _evaluations(page)
    page.locator(".progress[data-stage=done]").or_(page.get_by_text("becoming sharper")).first.wait_for()
    _until(page, lambda: _evaluations(page) >= first)
    visit.stop()
    assert visit.trouble == []


def test_stop_and_continue_from_there(visit: Visit) -> None:
    visit.choose(2)
    page = visit.page
    visit.stop()
    before = _evaluations(page)
    page.locator(".precision").evaluate(FINEST)
    page.locator(".progress[data-stage=playing]").wait_for()
    page.get_by_text(re.compile(r"asked for: ±1")).wait_for()
    _until(page, lambda: _evaluations(page) > before)
    visit.stop()
    assert page.locator(".go").is_visible()
    assert visit.trouble == []


def test_a_file_can_be_picked_dropped_and_pasted(visit: Visit) -> None:
    page = visit.page
    page.locator("#file").set_input_files(
        {"name": "my scan.png", "mimeType": "image/png", "buffer": picture()}
    )
    page.locator(".case h1", has_text="?").wait_for()
    assert "my scan.png" in page.locator(".kicker").inner_text()
    for kind in ("drop", "paste"):
        page.goto(visit.address)
        page.locator(".thumb").first.wait_for()
        page.evaluate(_GIVE, [kind, list(picture())])
        page.locator(".case h1", has_text="?").wait_for()
    assert visit.trouble == []


_GIVE = """([kind, bytes]) => {
  const given = new DataTransfer();
  given.items.add(new File([new Uint8Array(bytes)], kind + ".png", { type: "image/png" }));
  const event = kind === "drop"
    ? new DragEvent("drop", { dataTransfer: given, bubbles: true, cancelable: true })
    : new ClipboardEvent("paste", { clipboardData: given, bubbles: true, cancelable: true });
  document.body.dispatchEvent(event);
}"""


def test_what_is_no_image_is_told(visit: Visit) -> None:
    page = visit.page
    page.locator("#file").set_input_files({"name": "x.png", "mimeType": "image/png", "buffer": b"nothing"})
    page.locator("#trouble").wait_for(state="visible")
    assert "x.png" in page.locator("#trouble").inner_text()


def test_hiding_regions_asks_again(visit: Visit) -> None:
    visit.choose(3)
    visit.stop()
    page = visit.page
    page.locator(".pictures .pointable").scroll_into_view_if_needed()
    frame = page.locator(".pictures .pointable").bounding_box()
    page.mouse.click(frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2)
    page.locator(".whatif-row").wait_for()
    said = page.locator(".whatif-answer .lead").inner_text()
    assert "the map had predicted" in said
    assert page.locator(".pictures .off").count() == 2  # on the image and on the map
    assert page.locator(".whatif-answer .bars").count() == 3
    page.mouse.move(frame["x"] + 3, frame["y"] + 3)
    page.mouse.down()
    page.mouse.move(frame["x"] + frame["width"] - 3, frame["y"] + 3, steps=30)
    page.mouse.up()
    page.get_by_text(re.compile(r"without [4-9] regions")).wait_for()
    page.locator(".show-all").click()
    assert page.locator(".off").count() == 0
    assert visit.trouble == []


def test_pointing_tells_the_value_for_the_class_and_for_prototypes(visit: Visit) -> None:
    visit.choose(4)
    visit.stop()
    page = visit.page
    page.locator(".pictures .pointable").scroll_into_view_if_needed()
    frame = page.locator(".pictures .pointable").bounding_box()
    page.mouse.move(frame["x"] + 5, frame["y"] + 5)
    said = page.locator("#tip").inner_text()
    assert said.startswith("Region 0: ")
    assert "±" in said
    assert "prototype" in said
    page.mouse.move(2, 2)
    assert not page.locator("#tip").is_visible()


def test_the_keyboard_is_enough(visit: Visit) -> None:
    page = visit.page
    page.locator(".thumb").first.focus()
    page.keyboard.press("Enter")
    page.locator(".pictures .pointable").wait_for()
    visit.stop()
    page.locator(".pictures .pointable").focus()
    page.keyboard.press("ArrowRight")
    first = page.locator("#tip").inner_text()
    page.keyboard.press("ArrowDown")
    assert page.locator("#tip").inner_text() != first
    page.keyboard.press("Space")
    page.locator(".whatif-row").wait_for()
    assert "hidden" in page.locator("#tip").inner_text()
    assert visit.trouble == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_it_fits_and_can_be_read(browser: Any, served: Server, width: int, scheme: str) -> None:
    visit = Visit(browser, served.address, width, scheme)
    page = visit.page
    page.locator(".thumb").first.wait_for()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    visit.choose(5)
    visit.stop()
    page.locator(".pictures .pointable").focus()
    page.keyboard.press("Space")
    page.locator(".whatif-row").wait_for()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    paper = luminance(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))
    assert (paper < 0.1) is (scheme == "dark")
    for selector in (".lead", ".note", ".kicker", ".progress .heading", ".bars th", "button.go, .chips li"):
        ink = luminance(page.locator(selector).first.evaluate("e => getComputedStyle(e).color"))
        low, high = sorted((ink, paper))
        assert (high + 0.05) / (low + 0.05) >= 4.5, selector
    assert page.pdf(format="A4").startswith(b"%PDF")
    visit.context.close()


def test_everything_has_a_name_for_those_who_cannot_see_it(visit: Visit) -> None:
    visit.choose(6)
    visit.stop()
    unnamed = visit.page.evaluate(
        """() => Array.from(document.querySelectorAll('button, input, select, .picture, img')).filter(e =>
          !(e.getAttribute('aria-label') || e.textContent.trim() || (e.labels && e.labels.length) || e.alt)
        ).map(e => e.outerHTML.slice(0, 80))"""
    )
    assert unnamed == []


def test_two_tabs_and_a_link_show_the_same_case(visit: Visit) -> None:
    visit.choose(7)
    visit.stop()
    other = visit.context.new_page()
    other.goto(visit.page.url)
    other.locator(".pictures .pointable").wait_for()
    assert _evaluations(other) == _evaluations(visit.page)
    other.goto(f"{visit.address}cases")
    assert visit.page.url.rpartition("/")[2] in other.content()


def test_pages_of_others_learn_nothing(browser: Any, served: Server, tmp_path: Any) -> None:
    evil = tmp_path / "evil.html"
    evil.write_text(
        f"""<script>
        fetch("{served.address}ask/test", {{method: "POST", mode: "no-cors", body: '{{"index": 0}}'}})
          .catch(() => 0).finally(() => document.title = "done");
        </script><img src="{served.address}thumbnail/0/0"><iframe src="{served.address}"></iframe>"""
    )
    before = len(served.state._cases)
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(evil.as_uri())
    page.wait_for_function("document.title === 'done'")
    _until(page, lambda: page.frames[1].url.startswith("chrome-error:"))  # the frame is refused
    assert page.locator("img").evaluate("e => e.naturalWidth") == 0
    assert len(served.state._cases) == before
    page.close()


def _until(page: Any, done: Callable[[], bool]) -> None:
    """Waits as long as it takes, within reason; the page goes on meanwhile."""
    for _ in range(600):
        if done():
            return
        page.wait_for_timeout(200)
    raise AssertionError("It did not happen in two minutes and more.")


def _evaluations(page: Any) -> int:
    found = re.search(r"([\d,]+) evaluations", page.locator(".progress").inner_text())
    return int(found[1].replace(",", "")) if found else 0


def test_a_prototype_opens_and_closes(visit: Visit) -> None:
    visit.choose(1)
    visit.stop()
    page = visit.page
    page.locator(".card-open").first.click()
    page.locator(".portrait-answer h2").wait_for()
    assert page.locator(".portrait-answer .nearest figure").count() > 1
    assert page.locator(".portrait-answer .bars tr").count() == 8
    page.keyboard.press("Escape")
    assert not page.locator(".portrait-panel").is_visible()
    assert visit.trouble == []


def test_against_another_class_everything_follows(visit: Visit) -> None:
    visit.choose(2)
    page = visit.page
    other = page.locator("[data-field=versus] option").nth(1).inner_text()
    page.locator("[data-field=versus]").select_option(label=other)
    page.locator("h1", has_text=f"and not {other}").wait_for()
    page.locator(".legend", has_text="rather than").first.wait_for()
    assert visit.trouble == []


def test_regions_can_be_drawn(visit: Visit) -> None:
    visit.choose(3)
    visit.stop()
    page = visit.page
    page.locator(".draw").click()
    frame = page.locator(".pictures .picture").first.bounding_box()
    x, y, side = frame["x"], frame["y"], frame["width"]
    page.mouse.move(x + 0.2 * side, y + 0.2 * side)
    page.mouse.down()
    for to in ((0.6, 0.2), (0.6, 0.6), (0.2, 0.6), (0.2, 0.25)):
        page.mouse.move(x + to[0] * side, y + to[1] * side, steps=5)
    page.mouse.up()
    assert page.locator(".drawn").count() == 1
    page.locator(".draw-ask").click()
    page.get_by_text("2 of 2 regions are colored").or_(page.get_by_text("known exactly")).first.wait_for()
    assert page.locator("[data-field=players]").input_value() == "drawn"
    assert visit.trouble == []


def test_regions_can_be_drawn_with_the_keyboard(visit: Visit) -> None:
    visit.choose(3)
    visit.stop()
    page, said = visit.page, visit.page.locator(".draw-said")
    page.locator(".draw").focus()
    page.keyboard.press("Enter")
    image = page.locator(".pictures .picture").first
    assert image.evaluate("picture => picture === document.activeElement")
    page.keyboard.press("Space")
    assert said.text_content() == "Corner 1: 50% from the left, 50% from the top."
    page.keyboard.press("Enter")
    assert "at least three corners; 1 are set" in said.text_content()
    for keys in (["ArrowRight"] * 4, ["ArrowDown"] * 4, ["Shift+ArrowLeft"]):
        for key in keys:
            page.keyboard.press(key)
        page.keyboard.press("Space")
    assert said.text_content() == "Corner 4: 69% from the left, 70% from the top."
    page.keyboard.press("Backspace")
    assert page.locator(".drawn-point").count() == 4  # three corners, and where it stands
    page.keyboard.press("Enter")
    assert said.text_content() == "The region is closed. 1 region is drawn."
    assert page.locator(".drawn").count() == 1
    page.locator(".draw-ask").focus()
    page.keyboard.press("Enter")
    page.get_by_text("2 of 2 regions are colored").or_(page.get_by_text("known exactly")).first.wait_for()
    assert page.locator("[data-field=players]").input_value() == "drawn"
    assert visit.trouble == []


def test_explainers_stand_side_by_side(visit: Visit) -> None:
    visit.choose(4)
    visit.stop()
    page = visit.page
    page.locator(".compare-name[value=dasp]").uncheck()
    page.locator(".compare-go").click()
    page.locator(".compare-answer .card").first.wait_for()
    assert page.locator(".compare-answer .picture").count() == 3
    assert page.locator(".compare-answer .score").count() == 3
    assert visit.trouble == []


def test_files_can_be_downloaded_and_the_report_opens(visit: Visit, tmp_path: Any) -> None:
    visit.choose(5)
    visit.stop()
    page = visit.page
    report = visit.save_report(tmp_path / "report.html")
    assert report.locator("h1").inner_text() == page.locator("h1").inner_text()


def test_two_networks_side_by_side(visit: Visit) -> None:
    visit.choose(6)
    visit.stop()
    page = visit.page
    page.locator(".other").select_option("1")
    page.locator(".two .case").nth(1).locator(".pictures .pointable").wait_for()
    kickers = page.locator(".two .case .kicker")
    assert kickers.nth(0).inner_text() != kickers.nth(1).inner_text()
    assert visit.trouble == []


def test_a_cell_of_the_confusion_matrix_opens_its_images(visit: Visit) -> None:
    page = visit.page
    page.get_by_role("link", name="how good?").first.click()
    page.locator(".confusion").wait_for()
    _until(page, lambda: page.reload() is not None and page.get_by_text("being classified").count() == 0)
    page.locator(".confusion a").first.click()
    page.locator("#images .thumb").first.click()
    page.locator(".case h1", has_text="?").wait_for()
    assert visit.trouble == []


def test_a_visitor_without_the_token_is_shown_the_door(browser: Any, run: Any) -> None:

    with opened(
        [run.folder], port=0, device="cpu", token="not-for-everybody", say=lambda text: None
    ) as server:
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        page = browser.new_context().new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(server.address.partition("?")[0])
        assert "needs its token" in page.content()
        page.goto(server.address)
        page.locator(".thumb").first.wait_for()
        assert "token" not in page.url
        server.stop()
        thread.join(timeout=20)


def _endless(visit: Visit, served: Server, number: int) -> Case:
    """The case of a test image whose game does not end by itself."""
    visit.choose(number)
    case = served.state.find(visit.page.url.rpartition("/")[2])
    assert case is not None
    case.go_on(ENDLESS)
    return case


def test_a_browser_that_is_killed_stops_costing(browser: Any, served: Server) -> None:
    visit = Visit(browser, served.address)
    case = _endless(visit, served, 1)
    visit.context.close()
    for _ in range(3000):
        if not case.live.readers:
            break
        time.sleep(0.1)
    assert case.live.readers == 0
    assert not case.wants_to_play


def test_the_page_says_the_place_in_the_queue(browser: Any, served: Server) -> None:
    visits = [Visit(browser, served.address) for _ in range(3)]
    for number, visit in enumerate(visits):
        _endless(visit, served, number)
    visits[0].page.locator(".queue", has_text="before you in the queue").wait_for()
    for visit in visits:
        visit.context.close()


def test_wrong_ones_can_be_filtered_and_too_large_a_file_is_refused(visit: Visit, served: Server) -> None:
    page, network = visit.page, served.state.networks[0]
    wait_for(lambda: None not in network.predictions)
    wrong = [index for index in range(len(network.predictions)) if network.is_wrong(index)]
    assert 0 < len(wrong) < len(network.predictions)
    page.locator(".thumb").first.wait_for()
    page.locator("#gallery-wrong").check()
    page.locator("#gallery-count", has_text=re.compile(rf"^{len(wrong)} images?$")).wait_for()
    shown = page.locator("#gallery .thumb").evaluate_all("all => all.map(e => Number(e.dataset.index))")
    assert shown == wrong
    assert page.locator("#gallery .thumb .flag.alert", has_text="seen as").count() == len(wrong)
    assert visit.trouble == []
    large = {"name": "large.png", "mimeType": "image/png", "buffer": b"x" * (BOUNDS.upload + 1)}
    page.locator("#file").set_input_files(large)
    page.locator("#trouble", has_text="The file is too large for this server.").wait_for()
    assert page.url == visit.address


def test_pages_of_a_run_open_from_every_page(
    visit: Visit,
    served: Server,
    judgment: Faithfulness,  # noqa: F811
) -> None:
    network, page = served.state.networks[1], visit.page
    assert network.explainer.run is not None
    folder = network.explainer.run.folder
    links = {
        name: page.get_by_role("link", name=f"{network.name}: {name}")
        for name in ("prototypes", "explainers")
    }
    links["explainers"].click()
    page.get_by_text("protopfaith faithfulness RUN").wait_for()  # not written yet
    visit.trouble.clear()  # which the browser calls an error
    if not (folder / "prototypes").exists():
        explain_prototypes(network.explainer, players=24, budget=64, nearest=2).save(folder / "prototypes")
    written = folder / "faithfulness" / "index.html"
    written.parent.mkdir()
    try:
        write_faithfulness(written, judgment, {"Scores": scores_figure(judgment)}, "Who is right?")
        links["explainers"].click()
        page.get_by_role("heading", name="Who is right?").wait_for()
        assert page.locator(".chart").first.evaluate("e => e.complete && e.naturalWidth > 0")
    finally:
        shutil.rmtree(written.parent)
    page.go_back()
    links["prototypes"].click()
    page.locator(".card .picture").first.wait_for()
    assert page.locator(".card").count() == len(network.model.prototypes)
    # Styles and scripts of written pages run, within their own policy.
    assert page.locator(".cards").first.evaluate("e => getComputedStyle(e).display") == "grid"
    assert visit.trouble == []


def test_other_questions_are_cases_of_a_list_and_all_files_can_be_kept(visit: Visit, tmp_path: Path) -> None:
    page = visit.page
    visit.choose(8)
    visit.stop()
    asked = {"baseline": "blur", "players": "superpixels:30"}
    counts = [_regions(page)]
    for field, value in (*asked.items(), ("players", "windows:16")):
        before = page.url
        page.locator(f"[data-field={field}]").select_option(value)
        page.wait_for_url(lambda url, before=before: url != before)
        page.locator(".pictures .pointable").wait_for()
        visit.stop()
        counts.append(_regions(page))
        assert page.locator(f"[data-field={field}]").input_value() == value
        assert page.locator("[data-field=baseline]").input_value() == "blur"  # what was asked before stays
    assert len({counts[1], counts[2], counts[3]}) == 3
    assert counts[3] == 9  # 48 pixels a side
    last = page.url
    page.get_by_role("link", name="Your cases").click()
    rows = page.locator(".cases tr")
    assert rows.count() >= 4
    assert rows.first.locator("a").get_attribute("href") == last.removeprefix(visit.address.rstrip("/"))
    rows.first.locator("a").click()
    page.locator(".pictures .pointable").wait_for()
    page.locator(".save-go").click()
    content = {
        name: _downloaded(page, name, tmp_path)
        for name in ("figure.png", "explanation.json", "explanation.npz")
    }
    with Image.open(io.BytesIO(content["figure.png"])) as figure:
        assert min(figure.size) > 300
    assert json.loads(content["explanation.json"])["name"] == "test image 8"
    with np.load(io.BytesIO(content["explanation.npz"])) as arrays:
        assert any(arrays[name].shape == (9,) for name in arrays.files)
    assert visit.trouble == []


def _regions(page: Any) -> int:
    numbers = json.loads(page.locator(".pictures .numbers").text_content())
    return len(numbers["maps"][0]["values"])


def _downloaded(page: Any, name: str, folder: Path) -> bytes:
    with page.expect_download() as caught:
        page.locator(".save-answer a", has_text=name).click()
    caught.value.save_as(folder / name)
    return (folder / name).read_bytes()


A4 = 688  # pixels between the margins of the page


def test_on_paper_nothing_is_cut_and_there_is_nothing_to_press(visit: Visit) -> None:
    page = visit.page
    visit.choose(9)
    visit.stop()
    page.locator(".pictures .pointable").focus()
    page.keyboard.press("Space")
    page.locator(".whatif-row").wait_for()
    page.set_viewport_size({"width": A4, "height": 971})
    page.emulate_media(media="print")
    page.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    seen = page.evaluate(_SEEN)
    assert seen["pressable"] == []
    assert seen["cut"] == []
    assert seen["closed"] == 0
    assert page.evaluate("() => document.documentElement.scrollWidth") <= A4
    for selector in (
        "h1",
        ".lead",
        ".pictures .picture",
        ".bars",
        ".whatif-answer .lead",
        ".legend",
        ".faithful",
    ):
        assert page.locator(selector).first.is_visible(), selector
    page.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0
    assert visit.trouble == []


_SEEN = """() => {
  const seen = e => e.checkVisibility() && e.getClientRects().length > 0;
  const all = (selector) => Array.from(document.querySelectorAll(selector)).filter(seen);
  const text = e => e.tagName + "." + e.className + " " + e.textContent.trim().slice(0, 40);
  const isCut = e => {
    const frame = e.getBoundingClientRect();
    const scrolls = e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== "visible";
    return frame.right > innerWidth + 1 || frame.left < -1 || scrolls;
  };
  return {
    pressable: all("button, input, select, nav, progress").map(text),
    cut: all("main *").filter(e => !e.closest("svg, .hidden") && isCut(e)).map(text),
    closed: document.querySelectorAll("main details:not([open])").length,
  };
}"""

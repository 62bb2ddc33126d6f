"""A server on a free port with the small run of other tests, and a browser where there is one."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from protopfaith.explanation import Explainer
from protopfaith.serve.bounds import Bounds
from protopfaith.serve.case import Case
from protopfaith.serve.networks import Network
from protopfaith.serve.question import Question
from protopfaith.serve.server import Server, opened
from protopfaith.training import Run
from tests.explanation.conftest import *  # noqa: F403
from tests.show.test_browser import FLAGS, PATIENCE

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
BOUNDS = Bounds(upload=2 * 2**20, stream=20.0)


@contextmanager
def running(folders: list[Path]) -> Iterator[Server]:
    """A server of these runs that answers."""
    with opened(folders, port=0, device="cpu", bounds=BOUNDS, say=lambda text: None) as server:
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        wait_until_it_answers(server)
        yield server
        server.stop()
        thread.join(timeout=20)


@pytest.fixture(scope="session")
def served(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A running server with the run twice, as two networks."""
    other = tmp_path_factory.mktemp("serve") / "other"
    shutil.copytree(run.folder, other)
    with running([run.folder, other]) as server:
        yield server


def wait_until_it_answers(server: Server) -> None:
    """Until the page is there."""
    for _ in range(200):
        try:
            httpx.get(server.address, timeout=10)
            return
        except httpx.HTTPError:
            continue
    raise AssertionError("The server does not answer.")


@pytest.fixture
def client(served: Server) -> Iterator[httpx.Client]:
    """A visitor without a browser."""
    with httpx.Client(base_url=served.address, timeout=120) as client:
        client.get("/")
        yield client


@pytest.fixture(scope="module")  # its event loop must not run while other modules have their own
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS), timeout=PATIENCE)
        yield browser
        browser.close()


class Visit:
    """A visitor's window, and whatever went wrong or was asked of others meanwhile."""

    def __init__(self, browser: Any, address: str, width: int = 1280, scheme: str = "light"):
        self.trouble: list[str] = []
        self.address = address
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True
        )
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.trouble.append(message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("request", self._note)
        self.page.goto(address)

    def _note(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.trouble.append(request.url)

    def choose(self, number: int = 0) -> None:
        """A test image of the gallery, until its first map is there."""
        self.page.locator(".thumb").nth(number).click()
        self.page.locator(".pictures .pointable").wait_for()

    def stop(self) -> None:
        """Stops the game, if it still plays."""
        self.page.locator(".progress[data-stage=playing], .progress[data-stage=done]").wait_for()
        if self.page.locator(".stop").is_visible():  # dispatched, as it may be done and hidden by now
            self.page.locator(".stop").dispatch_event("click")
        self.page.locator(".progress[data-stage=stopped], .progress[data-stage=done]").wait_for()

    def save_report(self, path: Path) -> Any:
        """Downloads the report and opens it, as a page of its own."""
        self.page.locator(".save-go").click()
        with self.page.expect_download() as caught:
            self.page.locator(".save-answer a", has_text="report.html").click()
        caught.value.save_as(path)
        report = self.context.new_page()
        report.goto(path.as_uri())
        return report


@pytest.fixture
def visit(browser: Any, served: Server) -> Iterator[Visit]:
    made = Visit(browser, served.address)
    yield made
    made.context.close()


@pytest.fixture(scope="module")
def settled(served: Server) -> tuple[httpx.Client, str]:
    """A visitor with a case whose map is there, and stopped."""
    client = httpx.Client(base_url=served.address, timeout=120)
    case = ask(client, 1)
    client.post(f"/case/{case}/continue", json={"precision": 0.5})
    follow(client, case)
    return client, case


def found(served: Server, name: str) -> Case:
    case = served.state.find(name)
    assert case is not None
    return case


def ask(client: httpx.Client, index: int = 0) -> str:
    answer = client.post("/ask/test", json={"run": 0, "index": index})
    assert answer.status_code == 200, answer.text
    return answer.json()["case"]


def follow(client: httpx.Client, case: str, seconds: float = 300) -> dict[str, str]:
    """Reads a stream until the map is as precise as asked."""
    blocks: dict[str, str] = {}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with client.stream("GET", f"/case/{case}/events") as stream:
            for line in stream.iter_lines():
                if line.startswith("data: "):
                    blocks |= json.loads(line.removeprefix("data: "))
                if 'data-stage="done"' in blocks.get("progress", ""):
                    return blocks
                if time.monotonic() > end:
                    break
    raise AssertionError(blocks.get("progress"))


def wait_for(done: Any, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def played(explainer: Explainer, pixels: torch.Tensor) -> Case:
    """A case without a server, whose few regions are played exactly."""
    network = Network(0, explainer, "birds")
    case = Case(network, explainer.open(pixels), Question(players="windows:16"), "me", bounds=Bounds())
    case.decide()
    case.play()
    return case

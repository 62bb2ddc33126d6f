"""Takes the pictures of the README and the tutorial: one per main command, from the demo's run.

    make pictures                             # all, the demo first if it has not run
    python scripts/take_pictures.py explain   # some of them

Needs chromium (or $CHROMIUM), which opens the pages without a network.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image, ImageChops

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[1]
RUN = Path("runs", "demo")  # as it is typed at the top of the repository
OTHER = Path("runs", "demo_hidden")
PICTURES = ROOT / "docs" / "pictures"
LARGEST = 150_000  # bytes
WIDTH = 1000  # pixels of the pictures
WINDOW = 1200  # pixels of the window that shows a page
EXPLAINERS = "ours,owen,dasp,integrated_gradients,protopnet,random"


@dataclass(frozen=True)
class Picture:
    """A page, the command that writes it, and how much of it is shown."""

    command: tuple[str, ...]
    page: str  # a pattern below the folder that the command writes to
    height: int


PAGES = {
    "explain": Picture(("explain", "RUN", "IMAGE", "--players", "8", "--out", "OUT"), "*/report.html", 1500),
    "prototypes": Picture(("prototypes", "RUN", "--players", "8", "--out", "OUT"), "*.html", 1200),
    "faithfulness": Picture(
        ("faithfulness", "RUN", "--prototypes", "4", "--explainers", EXPLAINERS), "*.html", 1200
    ),
}


def main() -> None:
    wanted = sys.argv[1:] or ["train", "evaluate", *PAGES, "serve"]
    os.chdir(ROOT)
    PICTURES.mkdir(exist_ok=True)
    if not (RUN / "images").is_dir():
        command("demo", "--out", str(RUN))
    if "train" in wanted:
        save(Image.open(RUN / "curves.png"), "train")
    if "evaluate" in wanted:
        save(table(command("evaluate", str(RUN))), "evaluate")
    for name, picture in PAGES.items():
        if name in wanted:
            take(name, picture)
    if "serve" in wanted:
        explore()


def explore() -> None:
    """The explorer: test images to choose from; a map that has become sharp, without the regions that speak
    most for the class; and the same image under a network that was trained on hidden regions."""
    from playwright.sync_api import sync_playwright

    from protopfaith.serve.server import opened

    if not (OTHER / "model.safetensors").exists():
        command("train", "birds", "augmentation.hide.share=0.5", "--out", str(OTHER))
    with opened([RUN, OTHER], port=0, say=print) as server, sync_playwright() as playwright:
        threading.Thread(target=server.run, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(600_000)
        page.goto(server.address)
        page.locator(".thumb img").nth(40).wait_for()
        page.wait_for_load_state("networkidle")
        save(screenshot(page), "serve-choose")
        page.set_viewport_size({"width": 1280, "height": 1480})
        page.locator(".thumb").nth(26).click()
        page.locator(".pictures .pointable").wait_for()
        case = server.state.find(page.url.rpartition("/")[2])
        assert case is not None
        case.go_on(0.1)
        page.locator(".progress[data-stage=done]").wait_for()
        case.hidden = tuple(sorted(case.explanation().class_map.evidence.argsort().tolist()[-4:]))
        page.reload()
        page.locator(".whatif-row").wait_for()
        save(screenshot(page), "serve")
        case.hidden = ()
        page.locator(".other").select_option("1")
        page.locator(".two .case").nth(1).locator(".pictures .pointable").wait_for()
        other = server.state.find(page.url.rpartition("/")[2])
        assert other is not None
        other.go_on(0.1)
        page.locator(".two .case").nth(1).locator(".progress[data-stage=done]").wait_for()
        page.set_viewport_size({"width": 1280, "height": 1100})
        save(screenshot(page), "serve-two")
        browser.close()
        server.stop()


def screenshot(page: Page) -> Image.Image:
    return Image.open(BytesIO(page.screenshot()))


def take(name: str, picture: Picture) -> None:
    """Runs the command and photographs its page; what is slow is kept in the run's folder between calls."""
    with tempfile.TemporaryDirectory() as folder:
        image = sorted((RUN / "images").rglob("*.png"))[0]
        words = {"RUN": str(RUN), "IMAGE": str(image), "OUT": folder}
        command(*(words.get(word, word) for word in picture.command))
        written = Path(folder) if "OUT" in picture.command else RUN / name
        save(photograph(sorted(written.glob(picture.page))[0], picture.height), name)


def command(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "protopfaith", *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    return done.stdout


def table(text: str) -> Image.Image:
    """What a command prints, as a page in a fixed-width font."""
    from rich.console import Console

    console = Console(record=True, width=100, file=StringIO(), legacy_windows=False)
    console.print(text, highlight=False, markup=False)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "table.html"
        page.write_text(
            "<meta charset='utf-8'><pre style='font: 15px/1.25 monospace; margin: 16px'>"
            + console.export_text()
            + "</pre>",
            encoding="utf-8",
        )
        return cut(photograph(page, 22 * (text.count("\n") + 3)))


def cut(picture: Image.Image, margin: int = 16) -> Image.Image:
    """Without the white around it."""
    white = Image.new("RGB", picture.size, "white")
    left, top, right, bottom = ImageChops.difference(picture, white).getbbox() or (0, 0, *picture.size)
    return picture.crop((max(left - margin, 0), max(top - margin, 0), right + margin, bottom + margin))


def chromium() -> str:
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        sys.exit("There is no chromium to take pictures with; install it, or say where it is in $CHROMIUM.")
    return found


def photograph(page: Path, height: int) -> Image.Image:
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "picture.png"
        subprocess.run(
            [
                chromium(),
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--hide-scrollbars",
                f"--user-data-dir={folder}/profile",
                f"--window-size={WINDOW},{height}",
                f"--screenshot={picture}",
                page.resolve().as_uri(),
            ],
            check=True,
            capture_output=True,
        )
        return Image.open(picture).convert("RGB")


def save(picture: Image.Image, name: str) -> None:
    """As JPEG, in the best quality that stays small."""
    picture = picture.convert("RGB")
    if picture.width > WIDTH:
        picture = picture.resize(
            (WIDTH, round(picture.height * WIDTH / picture.width)), Image.Resampling.LANCZOS
        )
    path = PICTURES / f"{name}.jpg"
    for quality in range(92, 30, -6):
        picture.save(path, quality=quality, optimize=True)
        if path.stat().st_size <= LARGEST:
            break
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main()

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
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from PIL import Image, ImageChops

ROOT = Path(__file__).parents[1]
RUN = Path("runs", "demo")  # as it is typed at the top of the repository
PICTURES = ROOT / "docs" / "pictures"
LARGEST = 150_000  # bytes
WIDTH = 1000  # pixels of the pictures
WINDOW = 1200  # pixels of the window that shows a page
EXPLAINERS = "ours,owen,dasp,integrated_gradients,protopnet,random"


@dataclass(frozen=True)
class Picture:
    """A page, the command that makes it, and how much of it is shown."""

    name: str
    command: tuple[str, ...]
    page: str  # a pattern below the run's folder
    height: int


PICTURES_OF = (
    Picture("explain", ("explain", "IMAGE", "--players", "8"), "explained/*/report.html", 1500),
    Picture("prototypes", ("prototypes", "--players", "8"), "prototypes/*.html", 1200),
    Picture(
        "faithfulness",
        ("faithfulness", "--prototypes", "4", "--explainers", EXPLAINERS),
        "faithfulness/*.html",
        1200,
    ),
)


def main() -> None:
    wanted = sys.argv[1:] or ["train", "evaluate", *(picture.name for picture in PICTURES_OF)]
    os.chdir(ROOT)
    PICTURES.mkdir(exist_ok=True)
    if not (RUN / "images").is_dir():
        command("demo", "--out", str(RUN))
    if "train" in wanted:
        save(Image.open(RUN / "curves.png"), "train")
    if "evaluate" in wanted:
        save(table(command("evaluate", str(RUN))), "evaluate")
    for picture in PICTURES_OF:
        if picture.name in wanted:
            take(picture)


def take(picture: Picture) -> None:
    """Runs the command (what is there already is not computed again) and photographs its page."""
    image = str(sorted((RUN / "images").glob("*.png"))[0])
    verb, *options = picture.command
    command(verb, str(RUN), *(image if option == "IMAGE" else option for option in options))
    page = sorted(RUN.glob(picture.page))[0]
    save(photograph(page, picture.height), picture.name)


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


def photograph(page: Path, height: int) -> Image.Image:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("There is no chromium to take pictures with; install it, or say where it is in $CHROMIUM.")
    with tempfile.TemporaryDirectory() as folder:
        picture = Path(folder) / "picture.png"
        subprocess.run(
            [
                chromium,
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

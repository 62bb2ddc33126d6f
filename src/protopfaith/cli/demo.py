"""`protopfaith demo`: everything at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from protopfaith.cli.app import app, console, fail_for, next_command, note, say
from protopfaith.cli.checks import check_output_folder
from protopfaith.cli.evaluate import evaluate_run, print_prototypes
from protopfaith.files import is_file

if TYPE_CHECKING:
    from protopfaith.training import Run

EXPLAINED = 3
PLAYERS = 8  # pixels a side: 144 regions of a 96 x 96 image
BUDGET = 4_096  # evaluations per game, which take this small network seconds


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="The run folder.")] = Path("runs/demo"),
) -> None:
    """Train on the embedded birds, explain three test images and show the reports.

    About two and a half minutes on two cores. If interrupted, it continues where it stopped.
    """
    check_output_folder(out)
    note("Loading; then it trains on the embedded birds for about two minutes.")
    from protopfaith.explanation import explain_files
    from protopfaith.training import load_recipe
    from protopfaith.training import train as run_training

    run = run_training(load_recipe("birds"), out, resume=is_file(out / "recipe.yaml"))
    console.print(evaluate_run(run, "test", "auto", 64).table())
    print_prototypes(run)
    images = write_test_images(run, EXPLAINED)
    batch = explain_files(run, images, out / "explained", players=PLAYERS, budget=BUDGET, progress=True)
    say(f"\nThe reports, one for each of {len(batch.cases)} test images: {batch.index}")
    say("\nNext")
    for words in (
        ("explain", out, images[0], "--players", PLAYERS, "--precision", 0.05),
        ("prototypes", out, "--players", PLAYERS, "--budget", BUDGET),
        ("faithfulness", out),
        ("serve", out),
    ):
        say(f"  {next_command(*words)}")
    fail_for([f"{failure.path}: {failure.message}" for failure in batch.failures])


def write_test_images(run: Run, count: int) -> list[Path]:
    """The first test images of as many classes, as files that the other commands can take, in folders with
    the names of their classes: by these reports know what is right."""
    from PIL import Image

    from protopfaith.writing import atomic

    test = run.data().test
    paths = []
    for label in range(count):
        index = test.labels.tolist().index(label)
        path = run.folder / "images" / test.classes[label] / f"{Path(test.paths[index]).stem}.png"
        with atomic(path) as partial:
            Image.fromarray(test.image(index).permute(1, 2, 0).numpy()).save(partial, format="PNG")
        paths.append(path)
    return paths

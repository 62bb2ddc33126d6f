"""Several trainings at once on one device, each in a process of its own.

A GPU that one small network leaves idle half of the time trains two in little more than the time of one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from protopfaith.arguments import whole_number
from protopfaith.errors import ProtoPFaithError
from protopfaith.progress import Bar
from protopfaith.training.recipe import Recipe, decisive
from protopfaith.training.run import Run, epochs_so_far, is_finished
from protopfaith.training.schedule import make_stages

MOST = 64
LOOK_EVERY = 0.5  # seconds
PATIENCE = 10.0  # seconds that an interrupted training has to end by itself


@dataclass
class Training:
    """A run to be trained, and the process that does it."""

    recipe: Recipe
    folder: Path
    process: subprocess.Popen[bytes] | None = None
    log: IO[bytes] | None = None
    problem: str | None = None
    expected: int = field(init=False)

    def __post_init__(self) -> None:
        self.expected = sum(stage.epochs for stage in make_stages(self.recipe.schedule))

    @property
    def log_path(self) -> Path:
        """Beside the run's folder."""
        return self.folder.with_name(f"{self.folder.name}.log")

    def start(self, recipe_path: Path, environment: dict[str, str]) -> None:
        """Begins, or goes on with what was interrupted."""
        self.recipe.save(recipe_path)
        command = [sys.executable, "-m", "protopfaith", "train", str(recipe_path), "--out", str(self.folder)]
        if (self.folder / "recipe.yaml").is_file():
            command.append("--resume")
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.log = self.log_path.open("wb")
        self.process = subprocess.Popen(
            command, stdout=self.log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment
        )

    def has_ended(self) -> bool:
        """Whether the process is gone; then also why, if not for having finished."""
        if self.process is None or self.process.poll() is None:
            return False
        self._close()
        self.expected = epochs_so_far(self.folder)
        if self.process.returncode:
            self.problem = last_error(self.log_path) or f"it ended with code {self.process.returncode}"
        return True

    def stop(self) -> None:
        """Ends the process; its run stays as it was after the last checkpoint."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._close()

    def _close(self) -> None:
        if self.log is not None:
            self.log.close()


def train_at_once(
    recipes: dict[Path, Recipe], at_once: int, *, progress: bool = True
) -> dict[Path, ProtoPFaithError]:
    """Trains a run in every folder, so many at a time; what is finished already is left alone.

    What each training prints is in a file beside its folder. A training that fails leaves the others alone;
    when this process is interrupted, all end, and another call goes on with them.

    Args:
        recipes: of the runs, by their folder
        at_once: how many at a time
        progress: show a bar over the epochs of all of them

    Returns:
        Why a run could not be trained, for those that could not.

    >>> train_at_once({}, 2)
    {}
    """
    check_at_once(at_once, list(recipes.values()))
    trainings = [Training(recipe, folder) for folder, recipe in recipes.items()]
    waiting = [training for training in trainings if not _is_done(training)]
    environment = _environment(min(at_once, max(len(waiting), 1)))
    running: list[Training] = []
    with Bar(progress) as bar, tempfile.TemporaryDirectory() as place:
        bar.begin("training", sum(training.expected for training in trainings))
        try:
            while waiting or running:
                while waiting and len(running) < at_once:
                    training = waiting.pop(0)
                    training.start(Path(place) / f"{training.folder.name}.yaml", environment)
                    running.append(training)
                time.sleep(LOOK_EVERY)
                _look(bar, trainings, running)
        finally:
            for training in running:
                training.stop()
    problems = [training for training in trainings if training.problem is not None]
    return {training.folder: _problem(training) for training in problems}


def check_at_once(at_once: int, recipes: Sequence[Recipe], *, apart: bool = False) -> None:
    """Raises if the number is none, if trainings need several devices each, or are spread already."""
    whole_number(at_once, "The number of trainings at once", least=1, most=MOST)
    if at_once > 1 and apart:
        raise ProtoPFaithError(
            "Trainings at once share one device, but a shard or Ray spreads them; give one of the two."
        )
    for compute in (recipe.compute for recipe in recipes):
        if at_once > 1 and (str(compute.devices) != "1" or compute.num_nodes != 1):
            raise ProtoPFaithError(
                f"Trainings at once share one device, but compute.devices is {compute.devices} and "
                f"compute.num_nodes {compute.num_nodes}; set both to 1, or train one after the other."
            )


def last_error(log: Path) -> str | None:
    """The sentence that a training ended with, from what it printed."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    said = [line.removeprefix("Error:").strip() for line in lines if line.startswith("Error:")]
    return said[-1] if said else None


def _look(bar: Bar, trainings: list[Training], running: list[Training]) -> None:
    """Takes note of what has ended, and of how far the others are."""
    for training in list(running):
        if not training.has_ended():
            continue
        running.remove(training)
        name = training.folder.name
        if training.problem is None:
            accuracy = Run(training.folder).result()["validation_balanced_accuracy"]
            measured = "trained" if accuracy is None else f"validation balanced accuracy {accuracy:.3f}"
            bar.say(f"{name}: {measured}")
        else:
            bar.say(f"{name}: {training.problem}")
    done = {training.folder.name: epochs_so_far(training.folder) for training in trainings}
    note = ", ".join(f"{training.folder.name} epoch {done[training.folder.name]}" for training in running)
    bar.update(done=sum(done.values()), total=sum(training.expected for training in trainings), note=note)


def _problem(training: Training) -> ProtoPFaithError:
    said = str(training.problem).rstrip(".")
    return ProtoPFaithError(f"{training.folder} could not be trained ({said}); see {training.log_path}.")


def _is_done(training: Training) -> bool:
    """Whether nothing is left to do; one that had another recipe is started, for the sentence about that."""
    folder = training.folder
    return is_finished(folder) and decisive(Run(folder).recipe()) == decisive(training.recipe)


def _environment(processes: int) -> dict[str, str]:
    """Processes share the cores, unless someone has said how many each may use."""
    threads = max((os.cpu_count() or 1) // processes, 1)
    return {"OMP_NUM_THREADS": str(threads), **os.environ, "PYTHONUNBUFFERED": "1"}

"""Runs that are independent of each other, trained as shards or by workers of Ray."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from protopfaith.cluster import SetAside, check_address, needs_of, on_ray
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_file
from protopfaith.progress import Bar
from protopfaith.shards import WHOLE, share
from protopfaith.training.launch import train, train_or_resume
from protopfaith.training.recipe import Recipe
from protopfaith.training.run import epochs_so_far, is_finished
from protopfaith.writing import refuse_existing

if TYPE_CHECKING:
    from lightning.fabric import Fabric


def train_distributed(
    recipes: Mapping[Path, Recipe],
    fabric: Fabric,
    *,
    resume: bool = False,
    shard: Sequence[int] = WHOLE,
    ray: str | None = None,
    progress: bool = True,
) -> list[Path]:
    """Trains runs, each in a folder of its own; what is finished is not done again.

    Args:
        recipes: folders of runs and how each is trained
        fabric: that has been launched already
        resume: go on with what was interrupted
        shard: (i, n) trains the i-th of n shares
        ray: `"local"`, or the address of a Ray cluster, whose workers train one run each
        progress: show a bar

    Returns:
        Folders of runs that are not finished yet: other shards'.
    """
    own = share(list(recipes), shard)
    if not resume and fabric.is_global_zero:
        for folder in own:
            refuse_existing(folder)
    if ray is None:
        for folder in own:
            train_or_resume(recipes[folder], folder, fabric, progress)
    else:
        left = {folder: recipes[folder] for folder in own if not is_finished(folder)}
        _on_ray(ray, left, fabric.device.type, progress)
    return fabric.broadcast([folder for folder in recipes if not is_finished(folder)])


def check_workers(address: str | None, recipes: Iterable[Recipe]) -> None:
    """Raises if runs could not be trained by Ray's workers; before anything is launched."""
    if address is None:
        return
    check_address(address)
    for compute in (recipe.compute for recipe in recipes):
        if compute.num_nodes != 1 or compute.devices not in (1, "1", "auto", -1, "-1"):
            raise ProtoPFaithError(
                f"With --ray every run has one device, but compute.devices is {compute.devices} and "
                f"compute.num_nodes {compute.num_nodes}; set both to 1, or leave --ray out."
            )


def _on_ray(address: str, recipes: Mapping[Path, Recipe], device: str, progress: bool) -> None:
    with Bar(progress) as bar:
        bar.begin("training", total=len(recipes))
        failures = []
        for folder, problem in _answers(address, recipes, device, bar):
            bar.advance()
            if problem is not None:
                failures.append(f"{folder.name}: {problem}")
                bar.say(f"Failed: {failures[-1]}")
    if failures:
        raise ProtoPFaithError(
            f"{len(failures)} of {len(recipes)} runs could not be trained; {failures[0]} The others are "
            "kept: the same command with --resume goes on."
        )


def _answers(
    address: str, recipes: Mapping[Path, Recipe], device: str, bar: Bar
) -> Iterator[tuple[Path, str | None]]:
    if not recipes:
        return
    threads = torch.get_num_threads()
    found = on_ray(
        address,
        TrainingWorker,
        (threads,),
        list(recipes),
        needs=needs_of(device, threads),
        given=lambda folder: (folder.absolute(), recipes[folder]),
        ahead=1,
        meanwhile=lambda: bar.update(note=f"{sum(map(epochs_so_far, recipes)):,} epochs so far"),
    )
    for folder, answer in found:
        yield folder, answer.why if isinstance(answer, SetAside) else answer


class TrainingWorker:
    """Trains one run after another; what its predecessor left unfinished goes on from its last epoch.

    Args:
        threads: of a CPU, which rounding depends on
    """

    def __init__(self, threads: int):
        torch.set_num_threads(threads)

    def answer(self, folder: Path, recipe: Recipe) -> str | None:
        """None, or why it could not be trained."""
        try:
            train(recipe, folder, resume=is_file(folder / "recipe.yaml"), progress=False)
        except ProtoPFaithError as error:
            return str(error)
        return None

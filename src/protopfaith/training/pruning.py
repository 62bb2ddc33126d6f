"""A run without some of its prototypes: drop them, refit F, compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from rich.table import Table

from protopfaith.annotations import check_arguments
from protopfaith.arguments import instance
from protopfaith.data import ImageData
from protopfaith.devices import choose_device
from protopfaith.specs import check_dropped
from protopfaith.training.family import trainer_of
from protopfaith.training.launch import make_fabric
from protopfaith.training.metrics import set_balanced_accuracy
from protopfaith.training.new_run import create_run
from protopfaith.training.reference_measurement import keep_reference
from protopfaith.training.run import Run
from protopfaith.training.schedule import Stage
from protopfaith.writing import atomic, refuse_existing


@dataclass(frozen=True)
class PruningReport:
    """Balanced accuracies before pruning, and after pruning and refitting F (nan for an empty set).

    Args:
        run: the new one
        dropped: indices of the prototypes that went
        kept: how many stayed
        validation: balanced accuracy on validation images, before and after
        test: balanced accuracy on test images, before and after

    >>> from tempfile import mkdtemp
    >>> report = prune_run(Run("runs/birds"), f"{mkdtemp()}/pruned", drop=[0], progress=False)
    >>> report.dropped, report.kept
    ((0,), 15)
    """

    run: Run
    dropped: tuple[int, ...]
    kept: int
    validation: tuple[float, float]
    test: tuple[float, float]

    def __repr__(self) -> str:
        return f"PruningReport({len(self.dropped)} dropped, {self.kept} kept; {self.run.folder})"

    def table(self) -> Table:
        """For `rich.print`."""
        table = Table("", "before", "after", title=f"Prototypes dropped: {len(self.dropped)}")
        table.add_row("prototypes", str(self.kept + len(self.dropped)), str(self.kept))
        for name, pair in (("validation", self.validation), ("test", self.test)):
            table.add_row(f"balanced accuracy, {name}", *(f"{value:.3f}" for value in pair))
        return table


def prune_run(
    run: Run,
    folder: Path | str,
    drop: Sequence[int] | None = None,
    *,
    tolerance: float | None = None,
    leaves: float | None = None,
    device: str = "auto",
    data: ImageData | None = None,
    progress: bool = True,
) -> PruningReport:
    """Drops prototypes of `run`, fits F anew and leaves the result as a run of its own in `folder`. Of a tree
    it drops leaves, and with them the nodes that lose a side.

    Args:
        run: what was trained; it stays as it is
        folder: of the new run; it must not be there yet
        drop: indices of prototypes that go; None: all but one of equal ones
        tolerance: squared distance up to which two are equal; None: what rounding leaves of zero, as
            everywhere
        leaves: of a tree, those go whose most probable class is at most so much above chance
        device: where to compute
        data: images instead of those that the recipe names
        progress: show a bar

    >>> from tempfile import mkdtemp
    >>> prune_run(Run("runs/birds"), f"{mkdtemp()}/pruned", drop=[1, 2], progress=False).run.is_finished()
    True
    """
    check_arguments(prune_run, locals())
    folder = Path(instance(folder, (str, Path), "A run", "a folder"))
    instance(run, Run, "A run to prune", "a Run")
    refuse_existing(folder)
    check_dropped(drop, tolerance)
    place = choose_device(device)
    data = run.data() if data is None else data
    before = run.model(place)
    kind = trainer_of(type(before))
    pruned, dropped = kind.pruned(before, drop, tolerance, leaves)
    recipe = run.recipe()
    if run.root is not None:  # the new run finds its images by itself
        recipe = replace(recipe, data=replace(recipe.data, root=str(run.root)))
    stages = [Stage("classifier", recipe.schedule.classifier.epochs, cycle=1)]
    fabric = make_fabric(recipe.compute, place)
    with atomic(folder) as unfinished, torch.random.fork_rng():
        origin = {"pruned_from": run.folder.name, "dropped_prototypes": list(dropped)}
        new = create_run(unfinished, recipe, data, **origin)
        kind(fabric, new, recipe, data, pruned, stages=stages, projecting=False, progress=progress).fit()
        after = new.model(place)
        keep_reference(new, data, after)  # before the folder has its name: it is whole or absent
    accuracy = partial(set_balanced_accuracy, preprocessing=data.preprocessing)
    return PruningReport(
        Run(folder),
        dropped,
        len(after.prototypes),
        validation=(accuracy(before, data.validation), accuracy(after, data.validation)),
        test=(accuracy(before, data.test), accuracy(after, data.test)),
    )

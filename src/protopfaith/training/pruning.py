"""A run without some of its prototypes: drop them, refit F, compare."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from rich.table import Table
from torch import Tensor

from protopfaith.annotations import check_arguments
from protopfaith.arguments import finite_number, instance, shown
from protopfaith.data import ImageData
from protopfaith.devices import choose_device
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import atomic
from protopfaith.network import PatchNetwork, ProtoPNet, ProtoTree, XProtoNet, distinct_prototypes, prune
from protopfaith.training.launch import make_fabric
from protopfaith.training.metrics import set_balanced_accuracy
from protopfaith.training.reference import keep_reference
from protopfaith.training.run import Run, create_run, refuse_existing
from protopfaith.training.schedule import Stage
from protopfaith.training.tree import trainer_of


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
    place = choose_device(device)
    data = run.data() if data is None else data
    before = run.model(place)
    pruned, dropped = _pruned(before, drop, tolerance, leaves)
    recipe = run.recipe()
    if run.root is not None:  # the new run finds its images by itself
        recipe = replace(recipe, data=replace(recipe.data, root=str(run.root)))
    stages = [Stage("classifier", recipe.schedule.classifier.epochs, cycle=1)]
    fabric = make_fabric(recipe.compute, place)
    with atomic(folder) as unfinished, torch.random.fork_rng():
        origin = {"pruned_from": run.folder.name, "dropped_prototypes": list(dropped)}
        new = create_run(unfinished, recipe, data, **origin)
        kind = trainer_of(pruned)
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


def _pruned(
    model: PatchNetwork, drop: Sequence[int] | None, tolerance: float | None, leaves: float | None
) -> tuple[PatchNetwork, tuple[int, ...]]:
    """A network without some prototypes, and which went."""
    if isinstance(model, ProtoTree):
        if leaves is None or drop is not None or tolerance is not None:
            raise ProtoPFaithError(
                "A ProtoTree is pruned by its leaves, not by its prototypes; say how much above chance those "
                "that stay must be, as in --leaves 0.1."
            )
        return prune_tree(model, leaves)
    if leaves is not None:
        raise ProtoPFaithError(
            f"A {type(model).__name__} has no leaves to prune; leave out --leaves, and name prototypes to "
            "drop where not all duplicates are meant."
        )
    dropped = _to_drop(model, drop, tolerance)
    kept = [index for index in range(len(model.prototypes)) if index not in dropped]
    pruned = prune(model, kept)
    if isinstance(model, ProtoPNet) and not isinstance(model, XProtoNet):  # whose equals see different things
        pruned.classifier.weight.data = _merged_weights(model, kept, tolerance)
    return pruned, dropped


def _merged_weights(model: ProtoPNet, kept: Sequence[int], tolerance: float | None) -> Tensor:
    """F's weights (C, kept): one that stays has those of its equals that go, as their distances are the same.
    So dropping repeats alone changes no logit."""
    weights, staying = model.classifier.weight.detach().clone(), set(kept)
    for group in distinct_prototypes(model, tolerance).groups:
        stay = [index for index in group if index in staying]
        gone = [index for index in group if index not in staying]
        if stay:
            weights[:, stay[0]] += weights[:, gone].sum(1)
    return weights[:, list(kept)]


def prune_tree(model: ProtoTree, above_chance: float) -> tuple[ProtoTree, tuple[int, ...]]:
    """A copy of a tree without leaves near chance, and the nodes that went with them.

    Args:
        model: the tree; it stays as it is
        above_chance: what the most probable class of a leaf must have above 1 / C to stay

    >>> tree = ProtoTree("small", ["cat", "dog"], depth=2, prototype_channels=8)
    >>> tree.leaves.data[0, 0] = tree.leaves.data[3, 1] = 5.0
    >>> smaller, dropped = prune_tree(tree, 0.1)
    >>> smaller.branches.children, dropped
    (((-1, -2),), (1, 2))
    """
    finite_number(above_chance, "What leaves have above chance", least=0)
    pruned = copy.deepcopy(model)
    if not pruned.prune_leaves(above_chance):
        raise ProtoPFaithError(
            f"No leaf of this tree is at most {above_chance:g} above chance; give a larger --leaves."
        )
    kept = set(pruned.branches.without(~pruned.alive.cpu())[1])
    return pruned.finished(), tuple(node for node in range(len(model.prototypes)) if node not in kept)


def _to_drop(model: PatchNetwork, drop: Sequence[int] | None, tolerance: float | None) -> tuple[int, ...]:
    if tolerance is not None:
        finite_number(tolerance, "The tolerance", least=0)
    if drop is None:
        dropped = distinct_prototypes(model, tolerance).duplicates
        if not dropped:
            raise ProtoPFaithError(
                "No two prototypes of a class are the same; name those to drop, as in --prototypes 2,9."
            )
        return dropped
    if isinstance(drop, str) or not all(isinstance(index, int) for index in drop):
        raise ProtoPFaithError(f"Prototypes to drop are a list of numbers, not {shown(drop)}.")
    last = len(model.prototypes) - 1
    if not len(drop) or not all(0 <= index <= last for index in drop):
        raise ProtoPFaithError(
            f"Prototypes to drop have indices from 0 to {last}, but got {shown(list(drop))}."
        )
    return tuple(sorted(set(drop)))

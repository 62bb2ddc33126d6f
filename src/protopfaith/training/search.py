"""Several runs of one recipe: every fold, or every point of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protopfaith.annotations import check_arguments
from protopfaith.arguments import instance
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import atomic, refuse_existing
from protopfaith.network import ENCODERS
from protopfaith.shards import WHOLE
from protopfaith.training.at_once import check_at_once, train_at_once
from protopfaith.training.folds import FOLDS, check_folds, of_fold
from protopfaith.training.grid import load_grid
from protopfaith.training.launch import make_fabric, train
from protopfaith.training.metrics import set_balanced_accuracy
from protopfaith.training.recipe import Recipe
from protopfaith.training.run import Run
from protopfaith.training.spread import check_workers, train_spread

if TYPE_CHECKING:
    import pandas as pd
    from lightning.fabric import Fabric


def train_folds(
    recipe: Recipe,
    folder: Path | str,
    folds: Sequence[int] = FOLDS,
    *,
    resume: bool = False,
    progress: bool = True,
    at_once: int = 1,
    shard: Sequence[int] = WHOLE,
    ray: str | None = None,
) -> pd.DataFrame:
    """Trains one model for each fold, in `folder/fold_0` and so on, each with its own pre-training if the
    recipe has one.

    Writes and returns `folds.csv`: a row for each fold, then their mean and standard deviation. With shards
    an empty table, while others are not finished.

    Args:
        recipe: how to train each of them
        folder: of all runs
        folds: which of 0 to 4
        resume: go on with what was interrupted
        progress: show a bar
        at_once: how many to train at a time, on one device, each in a process of its own
        shard: (i, n) trains the i-th of n shares of the runs; whoever is last makes the table
        ray: `"local"`, or the address of a Ray cluster, whose workers train one run each

    >>> from tempfile import mkdtemp
    >>> from protopfaith.training import load_recipe
    >>> small = ["data.size=[16,16]", "data.options={train: 40, validation: 8, test: 8}"]
    >>> short = ["schedule.cycles=1", "schedule.pretraining.epochs=1", "schedule.warmup.epochs=1"]
    >>> short += ["schedule.joint.epochs=1", "schedule.classifier.epochs=1", "compute.accelerator=cpu"]
    >>> table = train_folds(load_recipe("birds", small + short), f"{mkdtemp()}/folds", [0, 1], progress=False)
    >>> table["fold"].tolist()
    [0, 1, 'mean', 'std']
    """
    check_arguments(train_folds, locals())
    import pandas as pd

    instance(recipe, Recipe, "A recipe", "what load_recipe gives")
    check_folds(folds)
    check_at_once(at_once, [recipe], apart=_apart(shard, ray))
    check_workers(ray, [recipe])
    folder, fabric = _open(recipe, folder, resume or tuple(shard) != WHOLE)
    recipes = {folder / f"fold_{fold}": of_fold(recipe, fold) for fold in folds}
    options = _Together(at_once, tuple(shard), ray, resume, progress)
    failed = _train_together(recipes, fabric, options)
    if failed is None:
        return pd.DataFrame()
    rows = []
    for fold, (place, own) in zip(folds, recipes.items(), strict=True):
        if place in failed:
            continue
        run = _train_or_skip(own, place, fabric, progress)
        data = Run(run.folder, recipe.data.root).data()  # where this recipe says, whoever made the run
        test = set_balanced_accuracy(run.model(fabric.device), data.test, data.preprocessing)
        rows.append({"fold": fold, **_result(run), "test_balanced_accuracy": test})
    if not rows:
        raise _several(failed)
    table = pd.DataFrame(rows)
    numbers = table.drop(columns="fold")
    summary = [{"fold": "mean", **numbers.mean()}, {"fold": "std", **numbers.std(ddof=0)}]
    table = pd.concat([table, pd.DataFrame(summary)], ignore_index=True)
    _write(table, folder / "folds.csv", fabric)
    if failed:
        raise _several(failed)
    return table


def _several(failed: dict[Path, ProtoPFaithError]) -> ProtoPFaithError:
    """One sentence for all; what was trained is kept."""
    first = next(iter(failed.values()))
    if len(failed) == 1:
        return first
    return ProtoPFaithError(f"{len(failed)} runs could not be trained; the first: {first}")


def train_grid(
    name_or_path: str | Path,
    folder: Path | str,
    overrides: Sequence[str] = (),
    *,
    resume: bool = False,
    progress: bool = True,
    at_once: int = 1,
    shard: Sequence[int] = WHOLE,
    ray: str | None = None,
) -> pd.DataFrame:
    """Trains a run for every point of a search space, in `folder/000` and so on.

    Returns the table of runs, best validation balanced accuracy first; `runs.csv` holds it after each run.
    The test set is not touched. With shards an empty table, while others are not finished.

    Args:
        name_or_path: one of `grid_names`, or a YAML file
        folder: of all runs
        overrides: changes of the recipe for every run, such as "seed=1"
        resume: go on with what was interrupted
        progress: show a bar
        at_once: how many to train at a time, on one device, each in a process of its own
        shard: (i, n) trains the i-th of n shares of the runs; whoever is last makes the table
        ray: `"local"`, or the address of a Ray cluster, whose workers train one run each

    >>> from tempfile import mkdtemp
    >>> small = ["data.size=[16,16]", "data.options={train: 40, validation: 8, test: 8}"]
    >>> short = ["schedule.cycles=1", "schedule.pretraining.epochs=1", "schedule.warmup.epochs=1"]
    >>> short += ["schedule.joint.epochs=1", "schedule.classifier.epochs=1", "compute.accelerator=cpu"]
    >>> folder = Path(mkdtemp())
    >>> _ = (folder / "costs.yaml").write_text("recipe: birds\\nsearch:\\n  costs.cluster: [0.1, 0.8]")
    >>> table = train_grid(folder / "costs.yaml", folder / "runs", small + short, progress=False)
    >>> sorted(table["run"])
    ['000', '001']
    """
    check_arguments(train_grid, locals())
    import pandas as pd

    grid = load_grid(name_or_path)
    recipes = grid.recipes(overrides)
    for encoder in dict.fromkeys(recipe.model.encoder for recipe in recipes):
        ENCODERS[encoder]  # raises for an unknown one before the first training
    check_at_once(at_once, recipes, apart=_apart(shard, ray))
    check_workers(ray, recipes)
    folder, fabric = _open(recipes[0], folder, resume or tuple(shard) != WHOLE)
    places = [folder / f"{number:03d}" for number in range(len(recipes))]
    options = _Together(at_once, tuple(shard), ray, resume, progress)
    failed = _train_together(dict(zip(places, recipes, strict=True)), fabric, options)
    if failed is None:
        return pd.DataFrame()
    rows = []
    table = pd.DataFrame()
    for number, (recipe, point) in enumerate(zip(recipes, grid.points(), strict=True)):
        if places[number] in failed:
            continue
        run = _train_or_skip(recipe, places[number], fabric, progress)
        rows.append({"run": f"{number:03d}", **point, **_result(run)})
        order = ["validation_balanced_accuracy", "distinct_prototypes"]
        table = pd.DataFrame(rows).sort_values(order, ascending=False, ignore_index=True)
        _write(table, folder / "runs.csv", fabric)
    if failed:
        raise _several(failed)
    return table


@dataclass(frozen=True)
class _Together:
    """How several runs are trained, if not one after the other."""

    at_once: int
    shard: tuple[int, ...]
    ray: str | None
    resume: bool
    progress: bool


def _apart(shard: Sequence[int], ray: str | None) -> bool:
    return tuple(shard) != WHOLE or ray is not None


def _train_together(
    recipes: dict[Path, Recipe], fabric: Fabric, asked: _Together
) -> dict[Path, ProtoPFaithError] | None:
    """Trains what is not trained one after the other: what failed; None if others train the rest."""
    if _apart(asked.shard, asked.ray):
        left = train_spread(
            recipes,
            fabric,
            resume=asked.resume,
            shard=asked.shard,
            ray=asked.ray,
            progress=asked.progress,
        )
        return None if left else {}
    return train_at_once(recipes, asked.at_once, progress=asked.progress) if asked.at_once > 1 else {}


def _open(recipe: Recipe, folder: Path | str, resume: bool) -> tuple[Path, Fabric]:
    """The folder of several runs, and processes for all of them: they can be launched only once."""
    folder = Path(instance(folder, (str, Path), "Where to train", "a folder"))
    fabric = make_fabric(recipe.compute)
    if not resume and fabric.is_global_zero:
        refuse_existing(folder)
    fabric.launch()
    return folder, fabric


def _train_or_skip(recipe: Recipe, folder: Path, fabric: Fabric, progress: bool) -> Run:
    started = fabric.broadcast((folder / "recipe.yaml").is_file())
    run = train(recipe, folder, resume=started, fabric=fabric, progress=progress)
    fabric.barrier()
    return run


def _result(run: Run) -> dict[str, Any]:
    keys = ("validation_balanced_accuracy", "distinct_prototypes", "prototypes", "epoch")
    return {key: run.result()[key] for key in keys}


def _write(table: pd.DataFrame, path: Path, fabric: Fabric) -> None:
    if fabric.is_global_zero:
        with atomic(path) as partial:
            table.to_csv(partial, index=False)

"""Several runs of one recipe: every fold, or every point of a grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protopfaith.annotations import check_arguments
from protopfaith.arguments import instance
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import ENCODERS
from protopfaith.shards import WHOLE
from protopfaith.training.at_once import check_at_once, train_at_once
from protopfaith.training.distributed import check_workers, train_distributed
from protopfaith.training.folds import FOLDS, check_folds, of_fold
from protopfaith.training.grid import load_grid
from protopfaith.training.launch import make_fabric, train_or_resume
from protopfaith.training.metrics import set_balanced_accuracy
from protopfaith.training.recipe import Recipe
from protopfaith.training.run import Run
from protopfaith.writing import atomic, refuse_existing

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
    recipes, fabric, failed = _train_apart(
        {f"fold_{fold}": of_fold(recipe, fold) for fold in folds},
        folder,
        at_once=at_once,
        shard=shard,
        ray=ray,
        resume=resume,
        progress=progress,
    )
    if failed is None:
        return pd.DataFrame()
    rows = []
    for fold, (place, own) in zip(folds, recipes.items(), strict=True):
        if place in failed:
            continue
        run = train_or_resume(own, place, fabric, progress)
        data = Run(run.folder, recipe.data.root).data()  # where this recipe says, whoever made the run
        test = set_balanced_accuracy(run.model(fabric.device), data.test, data.preprocessing)
        rows.append({"fold": fold, **_result(run), "test_balanced_accuracy": test})
    if not rows:
        raise _several(failed)
    table = pd.DataFrame(rows)
    numbers = table.drop(columns="fold")
    summary = [{"fold": "mean", **numbers.mean()}, {"fold": "std", **numbers.std(ddof=0)}]
    table = pd.concat([table, pd.DataFrame(summary)], ignore_index=True)
    _write(table, Path(folder) / "folds.csv", fabric)
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
    own, fabric, failed = _train_apart(
        {f"{number:03d}": recipe for number, recipe in enumerate(recipes)},
        folder,
        at_once=at_once,
        shard=shard,
        ray=ray,
        resume=resume,
        progress=progress,
    )
    if failed is None:
        return pd.DataFrame()
    rows = []
    table = pd.DataFrame()
    for (place, recipe), point in zip(own.items(), grid.points(), strict=True):
        if place in failed:
            continue
        run = train_or_resume(recipe, place, fabric, progress)
        rows.append({"run": place.name, **point, **_result(run)})
        order = ["validation_balanced_accuracy", "distinct_prototypes"]
        table = pd.DataFrame(rows).sort_values(order, ascending=False, ignore_index=True)
        _write(table, Path(folder) / "runs.csv", fabric)
    if failed:
        raise _several(failed)
    return table


def _train_apart(
    recipes: Mapping[str, Recipe],
    folder: Path | str,
    *,
    at_once: int,
    shard: Sequence[int],
    ray: str | None,
    resume: bool,
    progress: bool,
) -> tuple[dict[Path, Recipe], Fabric, dict[Path, ProtoPFaithError] | None]:
    """Trains the runs that are not to be trained one after the other in this process: at once, as a shard, or
    by Ray.

    Args:
        recipes: of all runs, by the names of their folders in `folder`

    Returns:
        The runs by their folders; processes for those that are left, which may be all; and those that could
        not be trained, with the reason, or None if other shards have not finished theirs.
    """
    all_recipes = list(recipes.values())
    distributed = tuple(shard) != WHOLE or ray is not None
    check_at_once(at_once, all_recipes, apart=distributed)
    check_workers(ray, all_recipes)
    folder, fabric = _open(all_recipes[0], folder, resume or tuple(shard) != WHOLE)
    own = {folder / name: recipe for name, recipe in recipes.items()}
    if distributed:
        left = train_distributed(own, fabric, resume=resume, shard=shard, ray=ray, progress=progress)
        return own, fabric, None if left else {}
    return own, fabric, train_at_once(own, at_once, progress=progress) if at_once > 1 else {}


def _open(recipe: Recipe, folder: Path | str, resume: bool) -> tuple[Path, Fabric]:
    """The folder of several runs, and processes for all of them: they can be launched only once."""
    folder = Path(instance(folder, (str, Path), "Where to train", "a folder"))
    fabric = make_fabric(recipe.compute)
    if not resume and fabric.is_global_zero:
        refuse_existing(folder)
    fabric.launch()
    return folder, fabric


def _result(run: Run) -> dict[str, Any]:
    keys = ("validation_balanced_accuracy", "distinct_prototypes", "prototypes", "epoch")
    return {key: run.result()[key] for key in keys}


def _write(table: pd.DataFrame, path: Path, fabric: Fabric) -> None:
    if fabric.is_global_zero:
        with atomic(path) as partial:
            table.to_csv(partial, index=False)

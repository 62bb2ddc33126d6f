"""A run folder before its training: recipe and environment are written, or found to be those of before."""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from protopfaith.data import ImageData
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import check_folder, check_plain, is_file
from protopfaith.training.checkpoint import read_recipe
from protopfaith.training.recipe import Recipe, decisive
from protopfaith.training.run import Run
from protopfaith.training.trust import new_mark
from protopfaith.writing import atomic, refuse_existing

PACKAGES = (
    "protopfaith",
    "torch",
    "torchvision",
    "lightning",
    "safetensors",
    "numpy",
    "pillow",
    "scikit-learn",
)


def create_run(folder: Path, recipe: Recipe, data: ImageData, **more: Any) -> Run:
    """Writes recipe and environment into a new folder."""
    refuse_existing(folder)
    if recipe.data.root is not None:  # the run works from any folder
        root = str(Path(recipe.data.root).expanduser().absolute())
        recipe = replace(recipe, data=replace(recipe.data, root=root))
    environment = {
        "versions": versions(),
        "seed": recipe.seed,
        "data_fingerprint": data.fingerprint,
        "classes": list(data.classes),
        "images": {name: len(images) for name, images in data.sets().items()},
        "validation_per_class": _per_class(data),
        **new_mark(recipe),
        **more,
    }
    with atomic(folder) as partial:  # the folder appears with both files in it, or not at all
        partial.mkdir()
        (partial / "environment.json").write_text(json.dumps(environment, indent=2))
        recipe.save(partial / "recipe.yaml")
    return Run(folder)


def _per_class(data: ImageData) -> list[int]:
    """How many validation images each class has; nothing where images have several findings."""
    labels = data.validation.labels
    return [] if labels.dim() > 1 else torch.bincount(labels, minlength=len(data.classes)).tolist()


def check_resumable(run: Run, recipe: Recipe, data: ImageData) -> None:
    """Raises unless recipe and images are those of the run."""
    check_own_recipe(run, recipe)
    if data.fingerprint != run.environment()["data_fingerprint"]:
        raise ProtoPFaithError(
            f"The images have changed since the run {run.folder} was started (their fingerprint differs); "
            "restore them, or start a new run."
        )


def check_own_recipe(run: Run, recipe: Recipe) -> None:
    """Raises unless the recipe is that of the run and of the files in it, but for `compute` and where the
    data lies."""
    if is_file(run.model_path):
        run.check_model()
    check_plain(run.checkpoint_path)
    check_folder(run.folder / "tensorboard")
    if is_file(run.checkpoint_path):
        run.check_belongs(read_recipe(run.checkpoint_path), run.checkpoint_path)
    if "pruned_from" in run.environment():
        raise ProtoPFaithError(f"{run.folder} was made by pruning and is finished; start another run.")
    if "converted_from" in run.environment():
        raise ProtoPFaithError(f"{run.folder} was converted and was not trained here; start another run.")
    ours, theirs = decisive(recipe), decisive(run.recipe())
    changed = sorted(key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))
    if changed:
        key = changed[0]
        raise ProtoPFaithError(
            f"The run {run.folder} was started with another recipe ({key} was {theirs.get(key)!r}, now "
            f"{ours.get(key)!r}); resume it with its own recipe, or start a new run."
        )


def versions() -> dict[str, str]:
    """The versions of Python, the platform and the packages that results depend on."""
    found = {"python": sys.version.split()[0], "platform": platform.platform()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found

"""Cheap checks of paths and names, before anything heavy is imported: a typo is answered at once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from protopfaith.errors import ProtoPFaithError
from protopfaith.registry import did_you_mean

RECIPES = Path(__file__).parent.parent / "training" / "recipes"


def check_run(folder: Path, root: Path | None = None) -> None:
    """Raises if `folder` is no run, or its images are said to be where nothing is."""
    if not (folder / "recipe.yaml").is_file():
        raise ProtoPFaithError(
            f"{folder} is no run folder (it holds no recipe.yaml); give the folder of a training."
        )
    check_root(root)


def check_root(root: Path | None) -> None:
    """Raises if the folder of the images is not there."""
    if root is not None and not root.exists():
        raise ProtoPFaithError(f"There is no folder {root}; give the folder that holds the images.")


def check_images(paths: Iterable[Path]) -> None:
    """Raises if there is none of the images at all; where there are some, these are done first."""
    missing = [path for path in paths if not path.exists()]
    if missing and len(missing) == len(list(paths)):
        raise ProtoPFaithError(f"There is no image at {', '.join(map(str, missing))}; check the path.")


def check_recipe(recipe: str) -> None:
    """Raises if there is no such recipe, neither by name nor as a file."""
    path = Path(recipe)
    if path.is_file():
        return
    if path.suffix in (".yaml", ".yml"):
        raise ProtoPFaithError(f"There is no recipe file {path}; check the path.")
    known = [one.stem for one in RECIPES.glob("*.yaml")]
    if recipe not in known:
        raise ProtoPFaithError(f"There is no recipe named {recipe!r}; {did_you_mean(recipe, known)}")

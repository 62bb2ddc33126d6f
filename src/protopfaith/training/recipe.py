"""A training run as one file of typed values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from protopfaith.annotations import check_arguments
from protopfaith.arguments import instance, shown
from protopfaith.augmentation import Augmentation
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_file, read_plain_text
from protopfaith.registry import did_you_mean
from protopfaith.training.cost_weights import CostWeights
from protopfaith.training.recipe_sections import (
    SEED,
    ComputeRecipe,
    DataRecipe,
    ModelRecipe,
    OptimizationRecipe,
    ProjectionRecipe,
    ScheduleRecipe,
    TreeRecipe,
)
from protopfaith.typed import Unparsed, from_dict, section, setting, to_dict
from protopfaith.writing import atomic
from protopfaith.yamlfile import parse_yaml

FAMILIES = ("quick",)
"""What recipes have in common, to be named as their `base`."""
DEEPEST = 4


@dataclass(frozen=True)
class Recipe:
    """Everything that decides how a model comes about.

    Args:
        seed: of all random choices
        data: which images, at which size
        augmentation: what happens to training images
        model: the network
        tree: of the family prototree
        costs: weights of the losses
        optimization: batch size, learning rates and the like
        schedule: stages and their epochs
        projection: how prototypes become parts of images
        compute: devices and number formats

    >>> Recipe()
    Recipe(birds: small, 5 prototypes per class, 6 cycles, seed 0)
    """

    seed: int = setting(0, "of all random choices", **SEED)
    data: DataRecipe = section(DataRecipe, "which images")
    augmentation: Augmentation = section(Augmentation, "what may happen to a training image")
    model: ModelRecipe = section(
        ModelRecipe, "the network: encoder V, features Z, prototypes Q, classifier F"
    )
    tree: TreeRecipe = section(TreeRecipe, "of the family prototree")
    costs: CostWeights = section(CostWeights, "what is minimized beside the cross-entropy")
    optimization: OptimizationRecipe = section(OptimizationRecipe, "AdamW")
    schedule: ScheduleRecipe = section(
        ScheduleRecipe, "pre-training, warm-up, then cycles of joint training, projection and classifier"
    )
    projection: ProjectionRecipe = section(
        ProjectionRecipe, "prototypes become latent vectors of training images"
    )
    compute: ComputeRecipe = section(ComputeRecipe, "where and how fast; may change when a run is resumed")

    def __repr__(self) -> str:
        model, schedule = self.model, self.schedule
        return (
            f"Recipe({self.data.name}: {model.encoder}, {model.prototypes_per_class} prototypes per class, "
            f"{schedule.cycles} cycles, seed {self.seed})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as YAML holds them."""
        return to_dict(self)

    def save(self, path: Path | str) -> None:
        """Writes it as YAML, whole or not at all.

        Args:
            path: of the file; one that is there is replaced
        """
        with atomic(path) as partial:
            partial.write_text(yaml.safe_dump(self.to_dict(), sort_keys=False))


def recipe_names() -> list[str]:
    """The recipes in the package.

    >>> "birds" in recipe_names()
    True
    """
    folder = resources.files("protopfaith.training") / "recipes"
    return sorted(
        entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml")
    )


def recipe_summary(name: str) -> str:
    """What a recipe is for: its first line, which is a comment.

    Args:
        name: one of `recipe_names`

    >>> bool(recipe_summary("birds"))
    True
    """
    return _text(name).splitlines()[0].lstrip("# ")


def load_recipe(name_or_path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """A recipe of the package by name, or any YAML file; `overrides` are texts like `"data.root=images"`.

    Args:
        name_or_path: one of `recipe_names`, or a YAML file
        overrides: texts like `"data.root=images"`, applied in order

    >>> load_recipe("cub", ["optimization.learning_rate=1e-3"]).optimization.learning_rate
    0.001
    """
    check_arguments(load_recipe, locals())
    return recipe_from_dict(_read(name_or_path), overrides)


def recipe_from_dict(values: dict[str, Any], overrides: Sequence[str] = ()) -> Recipe:
    """Typed values from plain ones, with `overrides` applied first."""
    if isinstance(overrides, str):
        raise ProtoPFaithError(f"Overrides are a list of texts, not one; write [{shown(overrides)}].")
    for override in overrides:
        values = _override(values, override)
    return from_dict(Recipe, values)


def decisive(recipe: Recipe) -> dict[str, Any]:
    """What must stay the same when a run is resumed, by key."""
    flat = flatten(recipe.to_dict())
    return {
        key: value
        for key, value in flat.items()
        if not key.startswith("compute.") and key not in ("data.root", "model.otherwise")
    }


def flatten(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict) and value:
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _read(name_or_path: str | Path, depth: int = 0) -> dict[str, Any]:
    """The values of a recipe on top of those of its `base`, another recipe or a family, if it names one."""
    values = parse_mapping(_text(name_or_path), f"The recipe {name_or_path}")
    base = values.pop("base", None)
    if base is None:
        return values
    if depth == DEEPEST:
        raise ProtoPFaithError(
            f"The recipe {name_or_path} is the base of a base, and so on; name a base that has none."
        )
    return _merged(_read(base, depth + 1), values)


def _merged(base: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """`values` in the place of those of `base`, section by section."""
    merged = dict(base)
    for key, value in values.items():
        inner = merged.get(key)
        if isinstance(value, dict) and isinstance(inner, dict):
            merged[key] = _merged(inner, value)
        else:
            merged[key] = value
    return merged


def read_text(path: Path) -> str:
    """The text of a file; raises if it is no text."""
    return read_plain_text(path, "a YAML file")


def parse_mapping(text: str, what: str) -> dict[str, Any]:
    """YAML that holds keys and values (or nothing); `what` begins the sentence about anything else."""
    values = parse_yaml(text, what)
    if values is not None and not isinstance(values, dict):
        raise ProtoPFaithError(f"{what} must hold keys and values, not {shown(values)}.")
    return values or {}


def _text(name_or_path: str | Path) -> str:
    path = Path(instance(name_or_path, (str, Path), "A recipe", "a name or the path of a YAML file"))
    if is_file(path):
        return read_text(path)
    if path.suffix in (".yaml", ".yml"):
        raise ProtoPFaithError(f"There is no recipe file {path}; check the path.")
    name = str(name_or_path)
    folder = resources.files("protopfaith.training") / "recipes"
    if name in FAMILIES:
        return (folder / "families" / f"{name}.yaml").read_text()
    if name not in recipe_names():
        raise ProtoPFaithError(
            f"There is no recipe named {shown(name)}; {did_you_mean(name[:80], recipe_names())}"
        )
    return (folder / f"{name}.yaml").read_text()


def _override(values: dict[str, Any], override: str) -> dict[str, Any]:
    instance(override, str, "An override", "a text like section.key=value")
    key, equals, text = override.partition("=")
    if not equals or not all(part.strip() for part in key.split(".")):
        raise ProtoPFaithError(f"The override {shown(override)} must look like section.key=value.")
    *sections, last = key.strip().split(".")
    values = inner = dict(values)
    for name in sections:
        entry = inner.get(name, {})
        entry = entry.parsed if isinstance(entry, Unparsed) else entry  # a whole section, given before
        if not isinstance(entry, dict):
            raise ProtoPFaithError(
                f"The override {shown(override)} leads into {name!r}, which holds one value."
            )
        inner[name] = dict(entry)
        inner = inner[name]
    inner[last] = Unparsed(text)
    return values

"""A run folder: what was trained, how, on what, and with which result."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from protopfaith.arguments import instance, not_empty, shown
from protopfaith.data import ImageData, Preprocessing, load_data, options_of
from protopfaith.data.registry import COMMON, check_place, default_fold
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_file, read_json, read_plain_text, reason
from protopfaith.network import FAMILIES, Outcome, PatchNetwork, load, outcome_of, read_metadata
from protopfaith.training.certainty import balanced_interval
from protopfaith.training.checkpoint import read_position
from protopfaith.training.collapse import signs_of_shortfall
from protopfaith.training.recipe import Recipe, decisive, load_recipe, recipe_from_dict
from protopfaith.training.trust import check_paths

if TYPE_CHECKING:
    import pandas as pd

FEW = 500
"""Validation images below which the summary says how uncertain their accuracies are."""
RESULT: dict[str, Any] = {
    **dict.fromkeys(("epoch", "distinct_prototypes", "prototypes"), int),
    **dict.fromkeys(("validation_balanced_accuracy", "linear_probe", "plain_classifier"), (int, float)),
}
"""What a model's header says about its training: numbers, or nothing where they were not measured."""
LATER = ("linear_probe", "plain_classifier")  # which models of earlier versions lack


class Run:
    """A run folder, as `protopfaith.training.train` leaves it.

    It holds `recipe.yaml` (resolved), `environment.json` (versions, seed, data fingerprint), `metrics.csv`,
    `tensorboard/`, `last.safetensors` (to resume), `model.safetensors` (the best epoch with projected
    prototypes). Its properties are cheap; its methods read the disk.

    Args:
        folder: the folder of a training, or of a pruned run
        root: where the images are now, if not where the recipe says

    >>> run = Run("runs/birds")
    >>> run.is_finished(), run.preprocessing().size
    (True, (32, 32))
    >>> len(run.model().prototypes)
    16
    """

    def __init__(self, folder: Path | str, root: Path | str | None = None):
        self.folder = Path(not_empty(instance(folder, (str, Path), "A run", "its folder"), "A run"))
        if root is not None:
            instance(root, (str, Path), "The folder of the images", "a path")
        if not is_file(self.recipe_path):
            raise ProtoPFaithError(
                f"{self.folder} is no run folder (it holds no recipe.yaml); give the folder of a training."
            )
        if root is not None:
            check_place(self.recipe().data.name, root)
        self.root = root

    @property
    def recipe_path(self) -> Path:
        return self.folder / "recipe.yaml"

    @property
    def model_path(self) -> Path:
        return self.folder / "model.safetensors"

    @property
    def checkpoint_path(self) -> Path:
        return self.folder / "last.safetensors"

    @property
    def metrics_path(self) -> Path:
        return self.folder / "metrics.csv"

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    def recipe(self) -> Recipe:
        """How it was, or is to be, trained."""
        try:
            return load_recipe(self.recipe_path)
        except ProtoPFaithError as error:
            if str(self.recipe_path) in str(error):
                raise
            raise ProtoPFaithError(f"{self.recipe_path} is not usable: {error}") from error

    def environment(self) -> dict[str, Any]:
        """Versions, seed, data fingerprint and classes of its training."""
        path = self.folder / "environment.json"
        values = read_json(path, "a run that was trained to its end, or train anew")
        if not isinstance(values, dict) or not isinstance(values.get("data_fingerprint"), str):
            raise ProtoPFaithError(
                f"{path} does not say which images the run was trained on; restore it, or train anew."
            )
        return values

    def _kept_environment(self) -> dict[str, Any]:
        """As `environment`, but nothing where it is missing or damaged."""
        try:
            return self.environment()
        except ProtoPFaithError:
            return {}

    def check_paths(self) -> None:
        """Raises if the run names images and was not made here: see `training/trust.py`."""
        check_paths(self.folder, self.recipe(), self._kept_environment(), self.root)

    def trusted_root(self) -> Path | None:
        """The folder of its images, to be given to another machine, where the mark of a run counts for
        nothing; None where it is not known or not to be read."""
        root = self.root
        if root is None:
            try:
                self.check_paths()
            except ProtoPFaithError:
                return None
            root = self.recipe().data.root
        return None if root is None else Path(root).expanduser().absolute()

    def model(self, device: torch.device | str = "cpu", *, encoder: nn.Module | None = None) -> PatchNetwork:
        """The best model, in evaluation mode.

        Args:
            device: where it shall be
            encoder: the user's own encoder, where the network was trained with one
        """
        metadata = self._metadata()
        self.check_belongs(metadata.get("recipe"), self.model_path)
        self._check_environment(metadata)
        model = load(self.model_path, encoder=encoder, device=device)[0]
        preprocessing = self._preprocessing(metadata)
        if preprocessing.channels != model.in_channels:
            raise ProtoPFaithError(
                f"The preprocessing in {self.model_path} gives {preprocessing.channels} channels, but its "
                f"network takes {model.in_channels}; use another copy of it."
            )
        return model

    def preprocessing(self) -> Preprocessing:
        """How images are prepared for its network."""
        return self._preprocessing(self._metadata())

    def _preprocessing(self, metadata: dict[str, Any]) -> Preprocessing:
        try:
            return Preprocessing.from_dict(metadata["preprocessing"])
        except ProtoPFaithError as error:
            raise ProtoPFaithError(
                f"The preprocessing in {self.model_path} is not usable: {error} Use another copy of it."
            ) from error

    def _metadata(self) -> dict[str, Any]:
        """What was saved with the model; raises if something that every run has is missing."""
        metadata = read_metadata(self._existing_model_path())
        for name in ("preprocessing", "result"):
            if not isinstance(metadata.get(name), dict):
                raise ProtoPFaithError(
                    f"{self.model_path} has no {name} in its header, so it is none of a run; use another "
                    "copy."
                )
        wrong = _wrong_result(metadata["result"])
        if wrong:
            raise ProtoPFaithError(
                f"The header of {self.model_path} has the result {shown(metadata['result'].get(wrong))} as "
                f"{wrong}, which cannot be; use another copy of it."
            )
        return metadata

    def check_model(self) -> None:
        """Raises if the model is that of another run: its recipe, kept in the file, is not this one's."""
        self.check_belongs(self._metadata().get("recipe"), self.model_path)

    def check_belongs(self, kept: Any, path: Path) -> None:
        """Raises if the recipe that a file of tensors keeps is not this run's.

        Args:
            kept: the recipe, as plain values; nothing in files of earlier versions
            path: of the file
        """
        if not isinstance(kept, dict):
            return
        try:
            theirs = decisive(recipe_from_dict(kept))
        except ProtoPFaithError as error:
            raise ProtoPFaithError(
                f"The recipe that {path} keeps is not usable: {error} Use another copy of it."
            ) from error
        ours = decisive(self.recipe())
        changed = sorted(key for key in ours if ours[key] != theirs.get(key))
        if changed:
            raise ProtoPFaithError(
                f"{path} belongs to another run than {self.recipe_path}, or one of them was changed "
                f"({changed[0]} was {shown(theirs.get(changed[0]))} there, and is {shown(ours[changed[0]])} "
                "here); put the run's own file back."
            )

    def _check_environment(self, metadata: dict[str, Any]) -> None:
        """Raises if `environment.json` names other images than the model was trained on."""
        ours, theirs = metadata.get("data_fingerprint"), self._kept_environment().get("data_fingerprint")
        if ours and theirs and ours != theirs:
            raise ProtoPFaithError(
                f"{self.folder / 'environment.json'} belongs to another run: its images are not those that "
                f"{self.model_path.name} was trained on; put the run's own file there, or remove it."
            )

    def result(self) -> dict[str, Any]:
        """The best model's validation balanced accuracy, epoch and distinct prototypes."""
        return self._metadata()["result"]

    def comparison(self) -> str:
        """One line that says what the prototypes are worth: validation balanced accuracies of a linear
        probe of the encoder as it came, of the plain classifier and of the network with prototypes."""
        result = self.result()
        accuracies = [
            ("linear probe", result.get("linear_probe")),
            ("plain classifier", result.get("plain_classifier")),
            (self._family().__name__, result["validation_balanced_accuracy"]),
        ]
        shown = [f"{name} {value:.3f}" for name, value in accuracies if value is not None]
        shown = shown or ["not measured"]  # of a converted network, or without validation images
        return f"Validation balanced accuracy: {' / '.join(shown)}{self._about_few_images()}"

    def shortfall(self) -> list[str]:
        """A sentence where the network is far below its plain classifier; none where all is well."""
        result = self.result()
        accuracies = result.get("plain_classifier"), result["validation_balanced_accuracy"]
        return signs_of_shortfall(*accuracies, self._validation_images())

    def _about_few_images(self) -> str:
        """How uncertain the network's accuracy is, where few images measured it."""
        accuracy = self.result()["validation_balanced_accuracy"]
        count, classes = self._validation_images(), self._kept_environment().get("validation_per_class")
        known = isinstance(classes, list) and all(isinstance(number, int) for number in classes)
        present = [number for number in classes if number > 0] if known and classes else []
        if not 0 < count < FEW or not present or accuracy is None:
            return ""
        low, high = balanced_interval(accuracy, present)
        rarest = f", {min(present)} of the rarest class" if min(present) < max(present) else ""
        return (
            f" (95% interval {low:.2f} to {high:.2f}: {count} images{rarest}, which also chose the network; "
            "test images measure better)"
        )

    def _validation_images(self) -> int:
        """How many there were; 0 where that is not known."""
        images = self._kept_environment().get("images")
        count = images.get("validation") if isinstance(images, dict) else None
        return count if isinstance(count, int) else 0

    def outcome(self) -> Outcome:
        """Whether its network decides for "one" class, or on "several" findings."""
        return outcome_of(self._family())

    def _family(self) -> Any:
        return FAMILIES[self.recipe().model.family]

    def data(self) -> ImageData:
        """The images it was trained on; an error when they have changed since."""
        data = self.images()
        environment = self.environment()
        known = environment["data_fingerprint"]
        if not known and len(data.classes) != len(environment.get("classes", ())):
            raise ProtoPFaithError(
                f"{self.folder} was converted without images and has {len(environment.get('classes', ()))} "
                f"classes, but these images have {len(data.classes)}; give those that it was trained on."
            )
        if known and data.fingerprint != known:
            raise ProtoPFaithError(
                f"The images of {self.folder} are not those it was trained on (their fingerprint differs); "
                "restore them, or train anew."
            )
        return data

    def images(self) -> ImageData:
        """The images where they lie now, prepared as its network takes them; not compared with those of the
        training."""
        recipe = self.recipe()
        self.check_paths()
        data = load_recipe_data(recipe, self.root)
        return replace(data, preprocessing=self.preprocessing()) if is_file(self.model_path) else data

    def is_finished(self) -> bool:
        """Whether training came to its end."""
        return self.checkpoint_path.is_file() and read_position(self.checkpoint_path).finished

    def metrics(self) -> pd.DataFrame:
        """One row for each epoch."""
        import pandas as pd

        try:
            found = pd.read_csv(io.StringIO(read_plain_text(self.metrics_path, "it back, or train anew")))
            if not {"epoch", "stage"} <= set(found):
                raise ValueError("it has no columns epoch and stage")
            return found
        except ValueError as error:
            raise ProtoPFaithError(
                f"{self.metrics_path} cannot be read ({reason(error)}); restore it, or train anew."
            ) from error

    def _existing_model_path(self) -> Path:
        if is_file(self.model_path):
            return self.model_path
        if self._is_past_its_model():
            raise ProtoPFaithError(
                f"{self.model_path} was written in training and is not there any more, or is no file; put it "
                "back, or train anew in another folder."
            )
        raise ProtoPFaithError(
            f"{self.folder} has no model yet, the first comes with the first projection; resume the run."
        )

    def _is_past_its_model(self) -> bool:
        """Whether training has already left a model, so that resuming would bring none."""
        try:
            return is_file(self.checkpoint_path) and read_position(self.checkpoint_path).best is not None
        except ProtoPFaithError:
            return False


def _wrong_result(result: dict[str, Any]) -> str | None:
    """The first key of what was kept about a training that is missing or cannot be; None: all is well."""
    for name, kind in RESULT.items():
        value = result.get(name, "" if name not in LATER else None)
        number = isinstance(value, kind) and not isinstance(value, bool)
        if value is not None and (not number or value < 0 or (kind is not int and value > 1)):
            return name
    return None


def is_finished(folder: Path) -> bool:
    """Whether there is a run whose training came to its end."""
    return is_file(folder / "recipe.yaml") and Run(folder).is_finished()


def epochs_so_far(folder: Path) -> int:
    """How many epochs a run has behind it, also while another process writes there; 0 before it has begun."""
    try:
        return max((folder / "metrics.csv").read_bytes().count(b"\n") - 1, 0)
    except OSError:
        return 0


def load_recipe_data(recipe: Recipe, root: Path | str | None = None) -> ImageData:
    """The images that a recipe names; `root` replaces the recipe's."""
    data = recipe.data
    given = {name: getattr(data, name) for name in ("bits", "window", "groups")}
    if given["groups"] in ("names", "none") and "groups" not in options_of(data.name):
        del given["groups"]  # of a recipe for folders; other data sets know what belongs together
    given = {name: value for name, value in given.items() if value is not None}
    twice = sorted(data.options.keys() & {"name", *COMMON, *given})
    if twice:
        raise ProtoPFaithError(
            f"The recipe's data.options has {twice[0]!r}, which is no option but a key of its own; set "
            f"data.{twice[0]} alone."
        )
    return load_data(
        data.name,
        root=data.root if root is None else root,
        size=data.size,
        seed=data.seed,
        fold=default_fold(data.name) if data.fold == "auto" else data.fold,
        skip_unreadable=data.skip_unreadable,
        **data.options,
        **given,
    )

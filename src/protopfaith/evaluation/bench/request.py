"""What was asked about explainers: understood and checked before any work, then opened as a bench."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from protopfaith.annotations import fits
from protopfaith.arguments import instance, named, seed_number, shown, whole_number
from protopfaith.data import ImageSet, Preprocessing
from protopfaith.devices import choose_autocast, choose_device
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.bench.runner import Bench, Step
from protopfaith.evaluation.bench.settings import TRUTH, BenchSettings, make_settings
from protopfaith.evaluation.bench.subjects import choose_prototypes, find_subjects
from protopfaith.evaluation.explainers import EXPLAINERS, default_explainers
from protopfaith.evaluation.explainers.games import ESTIMATES, check_estimated
from protopfaith.evaluation.metrics.quantus_metrics import check_quantus
from protopfaith.evaluation.metrics.truth import check_true_values
from protopfaith.evaluation.results import EARLY
from protopfaith.files import is_file, sha256
from protopfaith.shapley import Game
from protopfaith.specs import check_once
from protopfaith.store import Store
from protopfaith.training import Run

SAMPLE = 512  # training images for the mean color and the variation of distances
VERSION = 2  # of what is computed: another one computes anew
FEWEST_STEPS = math.ceil(1 / EARLY)
MOST = 100_000_000


@dataclass(frozen=True)
class Request:
    """What is to be measured of which explainers, checked.

    Args:
        run: whose network is judged
        names: of explainers
        prototypes: how many, which, or None for all
        settings: how explainers work
        folder: for results
        device: where to compute
    """

    run: Run
    names: tuple[str, ...]
    prototypes: int | Sequence[int] | None
    settings: BenchSettings
    folder: Path
    device: torch.device | str

    def open(self, step: Step) -> tuple[Bench, list[Tensor]]:
        """Loads network and images: a bench to measure explainers on, and a sample of training images."""
        # Channels last: the same numbers, but faster.
        model = self.run.model(self.device).to(memory_format=torch.channels_last)
        data, preprocessing = self.run.data(), self.run.preprocessing()
        chosen = choose_prototypes(model, self.prototypes, self.settings.options.seed)
        subjects = find_subjects(model, data, chosen, preprocessing)
        sample = _sample(data.train, preprocessing, model.prototypes.device)
        settings = replace(self.settings, mean_color=_mean_color(sample))
        store = Store(self.folder / "results", {"model": sha256(self.run.model_path), "version": VERSION})
        return Bench(model, subjects, chosen, settings=settings, store=store, step=step), sample


def make_request(
    run: Run | Path | str,
    out_folder: Path | str | None,
    *,
    prototypes: int | Sequence[int] | None = 8,
    explainers: Sequence[str] | None = None,
    device: torch.device | str = "cpu",
    seed: int = 0,
    autocast: torch.dtype | str | None = None,
    limits: Mapping[str, int] | None = None,
    **more: Any,
) -> Request:
    """The request of a call of `faithfulness`, with defaults filled in; raises if it could not come to a good
    end.

    Args:
        run: a training run, or its folder
        out_folder: for results; `faithfulness` in the run's folder by default
        prototypes: how many, which, or None for all
        explainers: names; all but those that test the metrics by default
        device: where to compute
        seed: of all random choices
        autocast: a number format for plain forward passes
        limits: prototypes at most, by explainer
        more: other settings, see `make_settings`
    """
    run = run if isinstance(run, Run) else Run(run)
    device, seed = choose_device(device), seed_number(seed)
    if isinstance(explainers, str):
        raise ProtoPFaithError(f"Explainers are a list of names, not one text; write [{shown(explainers)}].")
    asked = default_explainers() if explainers is None else explainers
    if not fits(asked, Sequence[str]):
        raise ProtoPFaithError(f"Explainers are a list of names, not {shown(asked)}.")
    names = tuple(asked)
    check_once(names)
    autocast = choose_autocast(autocast, torch.device(device))
    size = run.preprocessing().size
    settings = make_settings(size, device, seed=seed, autocast=autocast, limits=limits, **more)
    if out_folder is not None:
        instance(out_folder, (str, Path), "Where to write", "a folder")
    folder = Path(out_folder) if out_folder is not None else run.folder / "faithfulness"
    if is_file(folder):
        raise ProtoPFaithError(f"{named(folder)} is a file; give a folder for the results.")
    prototypes = _plain(prototypes)
    check_request(names, prototypes, settings)
    return Request(run, names, prototypes, settings, folder, device)


def _plain(prototypes: Any) -> Any:
    """How many prototypes, or which ones, as Python's numbers: arrays and tensors have others."""
    if prototypes is None or isinstance(prototypes, str | bytes):
        return prototypes
    if getattr(prototypes, "ndim", None) == 0 or not isinstance(prototypes, Iterable):
        return whole_number(prototypes, "The number of prototypes")
    found = [whole_number(one, "A prototype", least=0) for one in islice(prototypes, MOST)]
    if len(set(found)) < len(found):
        raise ProtoPFaithError(f"Prototypes are {shown(found)}; name each of them once.")
    return found


def _sample(images: ImageSet, preprocessing: Preprocessing, device: torch.device) -> list[Tensor]:
    """Training images, evenly over the set, normalized, in batches."""
    indices = range(0, len(images), -(-len(images) // SAMPLE))
    batches = [indices[start : start + 64] for start in range(0, len(indices), 64)]
    return [preprocessing.normalize(images.uint8(batch)).to(device) for batch in batches]


def _mean_color(sample: Sequence[Tensor]) -> tuple[float, ...]:
    color = torch.cat([batch.mean((2, 3)) for batch in sample]).mean(0)
    return tuple(round(c, 4) for c in color.tolist())


def check_request(
    names: Sequence[str], prototypes: int | Sequence[int] | None, settings: BenchSettings
) -> None:
    """Raises, in one sentence, if something could not come to a good end."""
    _check_names(names, settings)
    _check_numbers(prototypes, settings)
    if settings.quantus:
        check_quantus()
    _check_estimates(names, settings)


def _check_names(names: Sequence[str], settings: BenchSettings) -> None:
    if not names:
        raise ProtoPFaithError(f"No explainer was named; give some of {', '.join(EXPLAINERS)}.")
    for name in [*names, *(set(settings.limits) - {TRUTH})]:
        EXPLAINERS[name]
    for name, limit in settings.limits.items():
        if limit < 1:
            raise ProtoPFaithError(f"The limit of {name} is {limit} prototypes; give at least one.")


def _check_numbers(prototypes: int | Sequence[int] | None, settings: BenchSettings) -> None:
    if prototypes is not None and not fits(prototypes, int | Sequence[int]):
        raise ProtoPFaithError(f"Prototypes are a number or a list of numbers, not {shown(prototypes)}.")
    count = prototypes if prototypes is None or isinstance(prototypes, int) else len(prototypes)
    options, early = settings.options, f", since AOPC is also taken over the first {EARLY:.0%} of the steps"
    for name, number, least, why in (
        ("number of prototypes", count, 1, ""),
        ("number of steps", settings.steps, FEWEST_STEPS, early),
        ("number of sizes", options.sizes, 1, ""),
        ("number of checked images", settings.checked, 1, ""),
        ("truth_budget", settings.truth_budget, 0, ""),
        ("moment_batch", options.moment_batch, 1, ""),
    ):
        if number is None:
            continue
        if isinstance(number, int) and number < least:
            raise ProtoPFaithError(f"The {name} is {number}; give at least {least}{why}.")
        whole_number(number, f"The {name}", least=least, most=MOST)


def _check_estimates(names: Sequence[str], settings: BenchSettings) -> None:
    """Estimators refuse what they cannot work with, such as a budget too small for the players."""
    options = settings.options
    image = torch.zeros(1, *options.players.labels.shape)
    game = Game(_zeros, image, options.players, memory=options.memory, check=False)
    for name in names:
        if name in ESTIMATES:
            check_estimated(name, game, options)
    if settings.truth_budget:
        try:
            check_true_values(game, settings.truth_budget)
        except ProtoPFaithError as error:
            raise ProtoPFaithError(
                f"truth_budget={settings.truth_budget} cannot be: {error} 0 leaves them out."
            ) from error


def _zeros(images: Tensor) -> Tensor:
    """Stands for the network."""
    return images.new_zeros(len(images), 1)

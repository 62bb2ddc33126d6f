"""From what was asked about explainers to the bench that measures them: network, images, settings, store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from protopfaith.annotations import fits
from protopfaith.arguments import instance, seed_number, shown
from protopfaith.data import ImageSet, Preprocessing
from protopfaith.devices import choose_autocast, choose_device
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.bench.request import check_request
from protopfaith.evaluation.bench.runner import Bench, Step
from protopfaith.evaluation.bench.settings import BenchSettings, make_settings
from protopfaith.evaluation.bench.subjects import choose_prototypes, find_subjects
from protopfaith.evaluation.explainers import default_explainers
from protopfaith.files import sha256
from protopfaith.store import Store
from protopfaith.training import Run

SAMPLE = 512  # training images for the mean color and the variation of distances
VERSION = 2  # of what is computed: another one computes anew


@dataclass(frozen=True)
class Judgment:
    """A judgment as it was asked for, checked.

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
        """Everything loaded: a bench for explainers, and a sample of training images."""
        # Channels last: the same numbers, but faster.
        model = self.run.model(self.device).to(memory_format=torch.channels_last)
        data, preprocessing = self.run.data(), self.run.preprocessing()
        chosen = choose_prototypes(model, self.prototypes, self.settings.options.seed)
        subjects = find_subjects(model, data, chosen, preprocessing)
        sample = _sample(data.train, preprocessing, model.prototypes.device)
        settings = replace(self.settings, mean_color=_mean_color(sample))
        store = Store(self.folder / "results", {"model": sha256(self.run.model_path), "version": VERSION})
        return Bench(model, subjects, chosen, settings=settings, store=store, step=step), sample


def understand(
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
) -> Judgment:
    """What was asked for, checked before any work.

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
    names = tuple(dict.fromkeys(asked))
    autocast = choose_autocast(autocast, torch.device(device))
    size = run.preprocessing().size
    settings = make_settings(size, device, seed=seed, autocast=autocast, limits=limits, **more)
    check_request(names, prototypes, settings)
    if out_folder is not None:
        instance(out_folder, (str, Path), "Where to write", "a folder")
    folder = Path(out_folder) if out_folder is not None else run.folder / "faithfulness"
    return Judgment(run, names, prototypes, settings, folder, device)


def _sample(images: ImageSet, preprocessing: Preprocessing, device: torch.device) -> list[Tensor]:
    """Training images, evenly over the set, normalized, in batches."""
    indices = range(0, len(images), -(-len(images) // SAMPLE))
    batches = [indices[start : start + 64] for start in range(0, len(indices), 64)]
    return [preprocessing.normalize(images.uint8(batch)).to(device) for batch in batches]


def _mean_color(sample: Sequence[Tensor]) -> tuple[float, ...]:
    color = torch.cat([batch.mean((2, 3)) for batch in sample]).mean(0)
    return tuple(round(c, 4) for c in color.tolist())

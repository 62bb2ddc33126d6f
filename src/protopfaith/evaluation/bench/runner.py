"""Everything that is measured on one explainer, each part computed once and kept in a store."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protopfaith.correlation import share_inside
from protopfaith.evaluation.bench.curves import RemovalCurves
from protopfaith.evaluation.bench.sanity_checks import SanityChecks
from protopfaith.evaluation.bench.settings import TRUTH, BenchSettings
from protopfaith.evaluation.bench.subjects import Subject, prototypes_of, with_prototypes
from protopfaith.evaluation.explainers import (
    EXPLAINERS,
    Explainable,
    Explained,
    Options,
    Prepared,
    game_of,
    selected_distances,
)
from protopfaith.evaluation.explainers.common import has_occurrence_maps
from protopfaith.evaluation.metrics.quantus_metrics import quantus_scores
from protopfaith.evaluation.metrics.truth import Truth, compare_with_truth, true_values
from protopfaith.evaluation.results import ExplainerResult, worst
from protopfaith.network import PatchNetwork
from protopfaith.shapley.memory import fitting
from protopfaith.store import Record, Store

TRUTH_SEED = 10_000  # far from the seeds that explainers sample with
Step = Callable[[str], None]  # called with what begins now


class Bench:
    """Explainers are put on it one after the other.

    `chosen` are the prototypes in the order in which they were drawn: those with a limit get the first.
    """

    def __init__(
        self,
        model: PatchNetwork,
        subjects: Sequence[Subject],
        chosen: Sequence[int],
        *,
        settings: BenchSettings,
        store: Store,
        step: Step,
    ):
        self.model, self.subjects, self.chosen, self.settings = model, subjects, list(chosen), settings
        self.store, self.step, self.checks = store, step, SanityChecks(model, settings, store)
        self.prototypes = prototypes_of(subjects)
        self.images = torch.stack([s.image for s in subjects for _ in s.prototypes])
        # What looks elsewhere than at the nearest position answers itself.
        fused = isinstance(model, PatchNetwork) and not has_occurrence_maps(model)
        self.prepared: Explainable = Prepared(model) if fused else model
        self.removals = RemovalCurves(self.prepared, self.images, self.prototypes, settings)

    @cached_property
    def options(self) -> Options:
        """Those of the settings, with a batch size that was measured once instead of for every game."""
        options, first = self.settings.options, self.subjects[0]
        # Raises if the network does not answer alike twice.
        game_of(self.prepared, first.image, first.prototypes, options, check=True)
        if options.batch_size is not None:
            return options
        function = selected_distances(self.prepared, first.prototypes)
        return replace(
            options, batch_size=fitting(function, first.image[None], options.memory, options.autocast)
        )

    def subjects_of(self, name: str) -> list[Subject]:
        """What an explainer (or the truth) is judged on: everything, or the first few prototypes."""
        limit = self.settings.limits.get(name)
        return list(self.subjects) if limit is None else with_prototypes(self.subjects, self.chosen[:limit])

    def steps_of(self, name: str) -> int:
        """How often `step` is called for an explainer, or the truth."""
        images = len(self.subjects_of(name))
        return images if name == TRUTH else images + 1 + min(self.settings.checked, images)

    def truth(self) -> Truth:
        """The true Shapley values of prototypes on their images, in the order of `subjects_of`."""
        records = self._for_subjects(TRUTH)
        halves = np.concatenate([r["halves"] for r in records], axis=1)
        return Truth(torch.from_numpy(halves), int(records[0]["evaluations"]))

    def result(self, name: str, truth: Truth | None) -> ExplainerResult:
        """All that is measured on one explainer."""
        records = self._for_subjects(name)
        subjects = self.subjects_of(name)
        prototypes = prototypes_of(subjects)
        explained = Explained(
            torch.from_numpy(np.concatenate([r["maps"] for r in records])).double(),
            shares=bool(records[0]["shares"]),
            regions=self.settings.options.players if bool(records[0]["regional"]) else None,
        )
        self.step(f"{name}: curves")
        curves = self._curves(name, explained, prototypes)
        gap = torch.from_numpy(np.concatenate([r["gap"] for r in records]))
        checked = self.checks.of(name, subjects[: self.settings.checked], self.step)
        return ExplainerResult(
            name=name,
            prototypes=tuple(prototypes),
            curves=curves,
            agreement={} if truth is None else self._agreement(explained, prototypes, truth),
            completeness_gap=torch.where(gap.isnan(), _gap(explained.maps, curves["zero"]), gap),
            seconds=torch.from_numpy(np.concatenate([r["seconds"] for r in records])),
            inside=_inside(explained.maps, subjects),
            axioms=worst(checked.axioms),
            randomization=checked.randomization,
            stability=checked.stability,
            quantus=self._quantus(name, explained.maps, prototypes) if self.settings.quantus else {},
            shares=explained.shares,
        )

    def maps(self, name: str) -> dict[int, Tensor]:
        """The maps (H, W) of an explainer that was measured already, by prototype."""
        found: dict[int, Tensor] = {}
        for subject in self.subjects_of(name):
            record = self.store.once(_file(name, subject), self._decisive(name, subject), _missing)
            found |= dict(zip(subject.prototypes, torch.from_numpy(record["maps"]), strict=True))
        return found

    def measure(self, name: str, subject: Subject) -> Record:
        """The maps of an explainer on one image, or the true values there; computed once."""
        compute = self._true_values if name == TRUTH else partial(self._explain, name)
        return self.store.once(_file(name, subject), self._decisive(name, subject), partial(compute, subject))

    def is_measured(self, name: str, subject: Subject) -> bool:
        """Whether `measure` would find it."""
        return self.store.has(_file(name, subject), self._decisive(name, subject))

    def _decisive(self, name: str, subject: Subject) -> dict[str, Any]:
        settings = self.settings.of_explainer(name)
        if name == TRUTH:
            settings["budget"] = self.settings.truth_budget
        return {**settings, **_of(subject)}

    def _for_subjects(self, name: str) -> list[Record]:
        records = []
        for subject in self.subjects_of(name):
            self.step(f"{name}: {subject.path}")
            records.append(self.measure(name, subject))
        return records

    def _true_values(self, subject: Subject) -> Mapping[str, Any]:
        game = game_of(self.prepared, subject.image, subject.prototypes, self.options)
        found = true_values(game, self.settings.truth_budget, TRUTH_SEED + self.settings.options.seed)
        return {"halves": found.halves.numpy(), "evaluations": found.evaluations}

    def _explain(self, name: str, subject: Subject) -> Mapping[str, Any]:
        options = self.options
        begin = time.perf_counter()
        found = EXPLAINERS[name](self.prepared, subject.image, subject.prototypes, options)
        seconds = time.perf_counter() - begin
        gap = torch.full((len(found.maps),), torch.nan, dtype=torch.float64)
        if found.attribution is not None:  # before the rest was redistributed
            gap = found.attribution.completeness_gap.abs() / found.attribution.total.abs()
        return {
            "maps": found.maps.float().numpy(),
            "shares": found.shares,
            "regional": found.regions is not None,
            "gap": gap.numpy(),
            "seconds": np.full(len(found.maps), seconds),
        }

    def _curves(self, name: str, explained: Explained, prototypes: list[int]) -> dict[str, Tensor]:
        settings = {"what": "curves", "steps": self.settings.steps, "prototypes": prototypes}
        settings |= self.settings.of_explainer(name) | {"mean": self.settings.mean_color}
        record = self.store.once(
            f"{name}/curves", settings, lambda: self.removals.of(explained, prototypes, self.options)
        )
        return {kind: torch.from_numpy(values) for kind, values in record.items()}

    def _agreement(self, explained: Explained, prototypes: list[int], truth: Truth) -> dict[str, Tensor]:
        """(n,) each, NaN for prototypes whose true values were not computed."""
        known = prototypes_of(self.subjects_of(TRUTH))
        both = [p for p in prototypes if p in known]
        rows = torch.tensor([prototypes.index(p) for p in both], dtype=torch.long)
        true = -truth.values[[known.index(p) for p in both]]
        near = compare_with_truth(explained.values(self.settings.options.players)[rows], true)
        found = {"pearson": near.pearson, "spearman": near.spearman}
        if explained.shares:
            found["relative_error"] = near.relative_error
        nowhere = torch.full((len(prototypes),), torch.nan, dtype=torch.float64)
        return {name: nowhere.index_copy(0, rows, values) for name, values in found.items()}

    def _quantus(self, name: str, maps: Tensor, prototypes: list[int]) -> dict[str, Tensor]:
        settings = {"what": "quantus", "prototypes": prototypes, **self.settings.of_explainer(name)}
        images = self.images[[self.prototypes.index(p) for p in prototypes]]
        seed = self.settings.options.seed
        record = self.store.once(
            f"{name}/quantus",
            settings,
            lambda: quantus_scores(self.model, images, prototypes, maps, seed=seed),
        )
        return {metric: torch.from_numpy(values) for metric, values in record.items()}


def _file(name: str, subject: Subject) -> str:
    return f"{name}/prototype-{'-'.join(map(str, subject.prototypes))}"


def _of(subject: Subject) -> dict[str, Any]:
    return {"prototypes": list(subject.prototypes), "image": subject.path}


def _missing() -> Mapping[str, Any]:
    raise LookupError("maps of an explainer that was not measured")


def _inside(maps: Tensor, subjects: Sequence[Subject]) -> Tensor:
    masks = [subject.foreground for subject in subjects for _ in subject.prototypes]
    nothing = torch.tensor([torch.nan], dtype=torch.float64)
    shares = [
        nothing if mask is None else share_inside(one[None], mask)
        for one, mask in zip(maps, masks, strict=True)
    ]
    return torch.cat(shares)


def _gap(maps: Tensor, curves: Tensor) -> Tensor:
    """|sum of the attributions - total| / |total|, where the curve runs from the image to the baseline."""
    total = curves[:, 0] - curves[:, -1]
    return (-maps.sum((-2, -1)) - total).abs() / total.abs().clamp_min(1e-30)

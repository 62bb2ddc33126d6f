"""Everything that is measured on one explainer, each part computed once and kept in a store."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protopfaith.evaluation.agreement import Truth, agreement, true_values
from protopfaith.evaluation.aopc import removal_curves, removal_ranks
from protopfaith.evaluation.axioms import AxiomCheck, check_axioms, on_grid
from protopfaith.evaluation.explainers import (
    EXPLAINERS,
    Explained,
    Options,
    game_of,
    selected_distances,
)
from protopfaith.evaluation.quantus_metrics import quantus_scores
from protopfaith.evaluation.sanity import randomization, share_inside, stability
from protopfaith.evaluation.store import Record, Store
from protopfaith.evaluation.subjects import Subject
from protopfaith.evaluation.summary import ExplainerResult, worst
from protopfaith.network import ProtoPNet
from protopfaith.shapley import make_baseline

TRUTH_SEED = 10_000  # far from the seeds that explainers sample with
Step = Callable[[str], None]  # called with what begins now


@dataclass(frozen=True)
class Plan:
    """What decides the results, besides the network and its images."""

    options: Options
    steps: int
    truth_budget: int
    checked: int  # prototypes for axioms and sanity checks
    mean_color: tuple[float, ...]
    quantus: bool = False

    def of_explainer(self, name: str) -> dict[str, Any]:
        """The settings that decide an explanation."""
        kept = asdict(self.options)
        players = kept.pop("players")["labels"].numpy().tobytes()
        kept.pop("memory")
        return {"explainer": name, "players": hashlib.sha256(players).hexdigest(), **kept}


class Bench:
    """Explainers are put on it one after the other."""

    def __init__(self, model: ProtoPNet, subjects: Sequence[Subject], plan: Plan, store: Store, step: Step):
        self.model, self.subjects, self.plan, self.store, self.step = model, subjects, plan, store, step
        self.prototypes = [p for subject in subjects for p in subject.prototypes]
        self.images = torch.stack([s.image for s in subjects for _ in s.prototypes])

    def steps_of(self) -> int:
        """How often an explainer calls ``step``."""
        return len(self.subjects) + 1 + min(self.plan.checked, len(self.subjects))

    def truth(self) -> Truth:
        """The true Shapley values of all prototypes on their images."""
        settings = {**self.plan.of_explainer("truth"), "budget": self.plan.truth_budget}

        def compute(subject: Subject) -> Mapping[str, Any]:
            game = game_of(self.model, subject.image, subject.prototypes, self.plan.options)
            found = true_values(game, self.plan.truth_budget, TRUTH_SEED + self.plan.options.seed)
            return {"halves": found.halves.numpy(), "evaluations": found.evaluations}

        records = self._for_subjects("truth", settings, compute)
        halves = np.concatenate([r["halves"] for r in records], axis=1)
        return Truth(torch.from_numpy(halves), int(records[0]["evaluations"]))

    def result(self, name: str, truth: Truth | None) -> ExplainerResult:
        """All that is measured on one explainer."""
        records = self._for_subjects(name, self.plan.of_explainer(name), lambda s: self._explain(name, s))
        explained = Explained(
            torch.from_numpy(np.concatenate([r["maps"] for r in records])).double(),
            shares=bool(records[0]["shares"]),
            regions=self.plan.options.players if bool(records[0]["regional"]) else None,
        )
        self.step(f"{name}: curves")
        curves = self._curves(name, explained)
        gap = torch.from_numpy(np.concatenate([r["gap"] for r in records]))
        checks = self._checks(name)
        return ExplainerResult(
            name=name,
            curves=curves,
            agreement={} if truth is None else self._agreement(explained, truth),
            completeness_gap=torch.where(gap.isnan(), _gap(explained.maps, curves["zero"]), gap),
            seconds=torch.from_numpy(np.concatenate([r["seconds"] for r in records])),
            inside=self._inside(explained.maps),
            axioms=worst(checks["axioms"]),
            randomization=checks["randomization"],
            stability=checks["stability"],
            quantus=self._quantus(name, explained.maps) if self.plan.quantus else {},
        )

    def maps(self, name: str) -> Tensor:
        """The maps of an explainer that was measured already, (n, H, W)."""
        records = [
            self.store.once(self._file(name, s), {**self.plan.of_explainer(name), **_of(s)}, _missing)
            for s in self.subjects
        ]
        return torch.from_numpy(np.concatenate([r["maps"] for r in records]))

    def _for_subjects(
        self, name: str, settings: dict[str, Any], compute: Callable[[Subject], Mapping[str, Any]]
    ) -> list[Record]:
        records = []
        for subject in self.subjects:
            self.step(f"{name}: {subject.path}")
            file, decisive = self._file(name, subject), {**settings, **_of(subject)}
            records.append(self.store.once(file, decisive, partial(compute, subject)))
        return records

    def _file(self, name: str, subject: Subject) -> str:
        return f"{name}/prototype-{'-'.join(map(str, subject.prototypes))}"

    def _explain(self, name: str, subject: Subject) -> Mapping[str, Any]:
        begin = time.perf_counter()
        found = EXPLAINERS[name](self.model, subject.image, subject.prototypes, self.plan.options)
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

    def _curves(self, name: str, explained: Explained) -> dict[str, Tensor]:
        settings = {"what": "curves", "steps": self.plan.steps, "prototypes": self.prototypes}
        settings |= self.plan.of_explainer(name) | {"mean": self.plan.mean_color}
        record = self.store.once(f"{name}/curves", settings, lambda: self._removals(explained))
        return {kind: torch.from_numpy(values) for kind, values in record.items()}

    def _removals(self, explained: Explained) -> Mapping[str, Any]:
        options = self.plan.options
        alike = torch.stack(
            [self._ranks(index, explained, same=True) for index in range(len(explained.maps))]
        )
        own = alike
        if explained.regions is None:
            own = torch.stack(
                [self._ranks(index, explained, same=False) for index in range(len(self.prototypes))]
            )
        baselines = {
            "zero": self._baselines("zero"),
            "blur": self._baselines("blur"),
            "mean": self._baselines("mean", value=list(self.plan.mean_color)),
        }

        def curves(ranks: Tensor, baseline: str, insertion: bool = False) -> np.ndarray:
            return removal_curves(
                selected_distances(self.model, self.prototypes),
                self.images,
                ranks,
                torch.arange(len(self.prototypes)),
                baselines[baseline],
                steps=self.plan.steps,
                insertion=insertion,
                memory=options.memory,
                autocast=options.autocast,
            ).numpy()

        found = {kind: curves(alike, kind) for kind in baselines}
        found["insertion"] = curves(alike, "zero", insertion=True)
        found["own"] = found["zero"] if own is alike else curves(own, "zero")
        return found

    def _ranks(self, index: int, explained: Explained, *, same: bool) -> Tensor:
        generator = torch.Generator().manual_seed(self.plan.options.seed + self.prototypes[index])
        regions = self.plan.options.players if same else explained.regions
        return removal_ranks(explained.maps[index].to(self.images.device), regions, generator)

    def _baselines(self, name: str, **more: Any) -> Tensor:
        return torch.stack([make_baseline(name, image, **more)[0] for image in self.images])

    def _agreement(self, explained: Explained, truth: Truth) -> dict[str, Tensor]:
        found = agreement(explained.values(self.plan.options.players), -truth.values)
        scaled = {"relative_error": found.relative_error} if explained.shares else {}
        return {"pearson": found.pearson, "spearman": found.spearman, **scaled}

    def _inside(self, maps: Tensor) -> Tensor:
        masks = [subject.foreground for subject in self.subjects for _ in subject.prototypes]
        nothing = torch.tensor([torch.nan], dtype=torch.float64)
        shares = [
            nothing if mask is None else share_inside(one[None], mask)
            for one, mask in zip(maps, masks, strict=True)
        ]
        return torch.cat(shares)

    def _checks(self, name: str) -> dict[str, Any]:
        """Axioms and sanity checks, on the first few subjects and a coarse grid."""
        records = []
        for subject in self.subjects[: self.plan.checked]:
            self.step(f"{name}: axioms and sanity checks")
            settings = {"what": "checks", **self.plan.of_explainer(name), **_of(subject)}
            file = f"{name}/checks-{subject.prototypes[0]}"
            records.append(self.store.once(file, settings, partial(self._check, name, subject)))
        return {
            "axioms": [_axioms(record) for record in records],
            "randomization": torch.tensor([float(r["randomization"]) for r in records]),
            "stability": torch.tensor([float(r["stability"]) for r in records]),
        }

    def _check(self, name: str, subject: Subject) -> Mapping[str, Any]:
        explainer, options = EXPLAINERS[name], on_grid(self.plan.options, subject.image)
        pair = (subject.prototypes[0], subject.others[0])
        own = explainer(self.model, subject.image, pair[:1], options)
        checks = check_axioms(explainer, self.model, subject.image, pair, options, own=own)
        arguments = (explainer, self.model, subject.image, pair[:1], options)
        return {
            "axiom": [c.axiom for c in checks],
            "violation": [c.violation for c in checks],
            "allowed": [c.allowed for c in checks],
            "note": [c.note for c in checks],
            "randomization": float(randomization(*arguments, own=own, seed=options.seed)[0]),
            "stability": float(stability(*arguments, own=own, seed=options.seed)[0]),
        }

    def _quantus(self, name: str, maps: Tensor) -> dict[str, Tensor]:
        settings = {"what": "quantus", "prototypes": self.prototypes, **self.plan.of_explainer(name)}
        seed = self.plan.options.seed
        record = self.store.once(
            f"{name}/quantus",
            settings,
            lambda: quantus_scores(self.model, self.images, self.prototypes, maps, seed=seed),
        )
        return {metric: torch.from_numpy(values) for metric, values in record.items()}


def _of(subject: Subject) -> dict[str, Any]:
    return {"prototypes": list(subject.prototypes), "image": subject.path}


def _missing() -> Mapping[str, Any]:
    raise LookupError("maps of an explainer that was not measured")


def _axioms(record: Record) -> list[AxiomCheck]:
    columns = (record[name].tolist() for name in ("axiom", "violation", "allowed", "note"))
    return [AxiomCheck(*fields) for fields in zip(*columns, strict=True)]


def _gap(maps: Tensor, curves: Tensor) -> Tensor:
    """|sum of the attributions - total| / |total|, where the curve runs from the image to the baseline."""
    total = curves[:, 0] - curves[:, -1]
    return (-maps.sum((-2, -1)) - total).abs() / total.abs().clamp_min(1e-30)

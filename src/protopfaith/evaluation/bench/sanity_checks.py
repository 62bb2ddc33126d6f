"""Axioms and sanity checks of one explainer on some images, kept in a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from protopfaith.evaluation.bench.settings import BenchSettings
from protopfaith.evaluation.bench.subjects import Subject
from protopfaith.evaluation.explainers import EXPLAINERS, selected_distances
from protopfaith.evaluation.metrics.axioms import AxiomCheck, check_axioms, on_grid
from protopfaith.evaluation.metrics.sanity import randomization, shuffled, stability
from protopfaith.evaluation.metrics.variants import narrowed, rewritten
from protopfaith.network import PatchNetwork
from protopfaith.shapley.memory import fitting
from protopfaith.store import Record, Store


@dataclass(frozen=True, eq=False)
class Checked:
    """Axioms of every image, and (images,) rank correlations."""

    axioms: list[list[AxiomCheck]]
    randomization: Tensor
    stability: Tensor


class SanityChecks:
    """The networks that explainers are tested with, made once, and what came out.

    Always in float32: axioms compare networks that differ by rounding alone.
    """

    def __init__(self, model: PatchNetwork, settings: BenchSettings, store: Store):
        self.model, self.settings, self.store = model, settings, store
        self._fitting: int | None = None

    @cached_property
    def twin(self) -> PatchNetwork:
        return rewritten(self.model)

    @cached_property
    def shuffled(self) -> PatchNetwork:
        return shuffled(self.model, self.settings.options.seed)

    def _batch(self, image: Tensor) -> int:
        """Measured once, on the twin: it needs the most memory."""
        if self._fitting is None:
            function = selected_distances(self.twin, [0])
            self._fitting = fitting(function, image[None], self.settings.options.memory)
        return self._fitting

    def of(self, name: str, subjects: Sequence[Subject], step: Callable[[str], None]) -> Checked:
        """Of one explainer on images; `step` is told before each."""
        records = []
        for subject in subjects:
            step(f"{name}: axioms and sanity checks")
            records.append(self.measure(name, subject))
        return Checked(
            [_axioms(record) for record in records],
            torch.tensor([float(r["randomization"]) for r in records]),
            torch.tensor([float(r["stability"]) for r in records]),
        )

    def measure(self, name: str, subject: Subject) -> Record:
        """Of one explainer on one image; computed once."""
        return self.store.once(*self._kept(name, subject), partial(self._check, name, subject))

    def is_measured(self, name: str, subject: Subject) -> bool:
        """Whether `measure` would find it."""
        return self.store.has(*self._kept(name, subject))

    def _kept(self, name: str, subject: Subject) -> tuple[str, dict[str, Any]]:
        """The name of the record and what decides it."""
        settings = {"what": "checks", **self.settings.of_explainer(name), "image": subject.path}
        settings["prototype"] = subject.prototypes[0]
        return f"{name}/checks-{subject.prototypes[0]}", settings

    def _check(self, name: str, subject: Subject) -> Mapping[str, Any]:
        explainer = EXPLAINERS[name]
        options = replace(on_grid(self.settings.options, subject.image), autocast=None)
        options = replace(options, batch_size=options.batch_size or self._batch(subject.image))
        pair = (subject.prototypes[0], subject.others[0])
        model, twin, other = (narrowed(m, pair) for m in (self.model, self.twin, self.shuffled))
        own = explainer(model, subject.image, [0], options)
        checks = check_axioms(explainer, model, subject.image, (0, 1), options, own=own, twin=twin)
        arguments = (explainer, model, subject.image, [0], options)
        return {
            "axiom": [c.axiom for c in checks],
            "violation": [c.violation for c in checks],
            "allowed": [c.allowed for c in checks],
            "note": [c.note for c in checks],
            "randomization": float(randomization(*arguments, own=own, other=other)[0]),
            "stability": float(stability(*arguments, own=own, seed=options.seed)[0]),
        }


def _axioms(record: Record) -> list[AxiomCheck]:
    columns = (record[name].tolist() for name in ("axiom", "violation", "allowed", "note"))
    return [AxiomCheck(*fields) for fields in zip(*columns, strict=True)]

"""What came out for every explainer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from protopfaith.evaluation.metrics.axioms import AxiomCheck
from protopfaith.evaluation.metrics.removal import aopc, insertion_score, paper_aopc
from protopfaith.evaluation.metrics.sanity import PrototypeHealth
from protopfaith.evaluation.metrics.truth import Truth

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Group

EARLY = 0.2  # the share of the image whose removal tells most


@dataclass(frozen=True, eq=False)
class ExplainerResult:
    """One explainer on its n prototypes.

    Args:
        name: of the explainer
        prototypes: on which it was judged
        curves: kind of removal to distances along it, (n, T + 1)
        agreement: pearson, spearman, relative_error; NaN where the truth is not known, empty without any
        completeness_gap: sum of its values minus the total, (n,)
        seconds: per image, (n,)
        inside: share of its positive evidence on the object, (n,)
        axioms: the worst of each, over the images checked
        randomization: rank correlation with the map of a network with shuffled weights
        stability: how far maps move with noise in the image
        quantus: metrics of that library, (n,)
        shares: whether its maps claim to be shares of a total: only then a gap between the two means
            something

    >>> from tempfile import mkdtemp
    >>> from protopfaith.evaluation import faithfulness
    >>> quick = dict(prototypes=1, steps=5, players=16, budget=64, truth_budget=0, checked=1, progress=False)
    >>> found = faithfulness("runs/birds", mkdtemp(), explainers=["owen", "random"], **quick)
    >>> found.results[0]
    ExplainerResult('owen', 1 prototypes)
    >>> found.results[0].curves["zero"].shape
    torch.Size([1, 6])
    """

    name: str
    prototypes: tuple[int, ...]
    curves: dict[str, Tensor]
    agreement: dict[str, Tensor]
    completeness_gap: Tensor
    seconds: Tensor
    inside: Tensor
    axioms: tuple[AxiomCheck, ...]
    randomization: Tensor
    stability: Tensor
    quantus: dict[str, Tensor] = field(default_factory=dict)
    shares: bool = True

    def __repr__(self) -> str:
        return f"ExplainerResult({self.name!r}, {len(self.prototypes)} prototypes)"

    def per_prototype(self) -> dict[str, Tensor]:
        """Every metric that each prototype has, (n,)."""
        zero, own = self.curves["zero"], self.curves["own"]
        return {
            "aopc_20": aopc(zero, EARLY),
            "aopc_100": aopc(zero),
            "aopc_20_own": aopc(own, EARLY),
            "aopc_100_own": aopc(own),
            "insertion": insertion_score(self.curves["insertion"]),
            "aopc_20_blur": aopc(self.curves["blur"], EARLY),
            "aopc_100_blur": aopc(self.curves["blur"]),
            "aopc_20_mean": aopc(self.curves["mean"], EARLY),
            "aopc_100_mean": aopc(self.curves["mean"]),
            **self.agreement,
            "completeness_gap": self.completeness_gap,
            "seconds": self.seconds,
            "inside": self.inside,
            **self.quantus,
        }

    def only(self, prototypes: Sequence[int]) -> ExplainerResult:
        """The same on some of the prototypes; axioms and sanity checks (on other images) stay.

        Args:
            prototypes: their numbers; those that were not judged are left out
        """
        rows = [row for row, p in enumerate(self.prototypes) if p in set(prototypes)]

        def some(values: dict[str, Tensor]) -> dict[str, Tensor]:
            return {name: value[rows] for name, value in values.items()}

        return replace(
            self,
            prototypes=tuple(self.prototypes[row] for row in rows),
            curves=some(self.curves),
            agreement=some(self.agreement),
            completeness_gap=self.completeness_gap[rows],
            seconds=self.seconds[rows],
            inside=self.inside[rows],
            quantus=some(self.quantus),
        )


@dataclass(frozen=True, eq=False)
class Faithfulness:
    """How faithful explainers are on one run.

    Args:
        folder: with page, figures and CSV
        prototypes: on which explainers were judged
        classes: how many the network has
        prototypes_per_class: how many, on average
        steps: T, of a removal curve
        players: what the regions are, in words
        n_players: how many regions
        results: one of each explainer
        skipped: explainers that could not run, and why
        truth: the true Shapley values, if they were asked for
        truth_prototypes: whose they are
        object_share: the object's mean share of the pixels: what a map without preference has inside; NaN if
            not known
        health: which prototypes are distinct and alive
        settings: how it was computed

    >>> from tempfile import mkdtemp
    >>> from protopfaith.evaluation import faithfulness
    >>> quick = dict(prototypes=1, steps=5, players=16, budget=64, truth_budget=0, checked=1, progress=False)
    >>> found = faithfulness("runs/birds", mkdtemp(), explainers=["owen", "random"], **quick)
    >>> found.frame().index.tolist(), found.page.name
    (['owen', 'random'], 'index.html')
    """

    folder: Path
    prototypes: tuple[int, ...]
    classes: int
    prototypes_per_class: float
    steps: int
    players: str
    n_players: int
    results: tuple[ExplainerResult, ...]
    skipped: dict[str, str]
    truth: Truth | None
    truth_prototypes: tuple[int, ...]
    object_share: float
    health: PrototypeHealth
    settings: dict[str, Any]

    def __repr__(self) -> str:
        names = ", ".join(result.name for result in self.results)
        return f"Faithfulness({len(self.prototypes)} prototypes, {names}; {self.folder})"

    @property
    def page(self) -> Path:
        """The page with tables, curves and maps."""
        return self.folder / "index.html"

    def only(self, prototypes: Sequence[int]) -> Faithfulness:
        """The same on some of the prototypes; nothing is computed anew.

        Args:
            prototypes: their numbers; those that were not judged are left out
        """
        wanted = set(prototypes)
        known = [row for row, p in enumerate(self.truth_prototypes) if p in wanted]
        truth = self.truth
        if truth is not None:
            truth = replace(truth, halves=truth.halves[:, known]) if known else None
        return replace(
            self,
            prototypes=tuple(p for p in self.prototypes if p in wanted),
            results=tuple(result.only(prototypes) for result in self.results),
            truth=truth,
            truth_prototypes=tuple(self.truth_prototypes[row] for row in known),
        )

    @property
    def common(self) -> Faithfulness | None:
        """On the prototypes that all explainers were judged on; None where those are all."""
        shared = set(self.prototypes).intersection(*(result.prototypes for result in self.results))
        return None if len(shared) in {0, len(self.prototypes)} else self.only(sorted(shared))

    def row(self, result: ExplainerResult) -> dict[str, float]:
        """Means over prototypes of every metric of one explainer, and the number n of those prototypes.

        The paper's AOPC grows with n, so there is none for an explainer that was judged on fewer.

        Args:
            result: one of `results`
        """
        row: dict[str, float] = {"n": len(result.prototypes)}
        row |= {name: _mean(values) for name, values in result.per_prototype().items()}
        whole = len(result.prototypes) == len(self.prototypes)
        paper = paper_aopc(result.curves["zero"], self.classes, self.prototypes_per_class)
        row["aopc_paper"] = paper if whole else math.nan
        row["seconds"] = float(result.seconds.median())  # the first one also waits for imports
        row |= {"randomization": _mean(result.randomization), "stability": _mean(result.stability)}
        row["axioms_passed"] = sum(check.passed is True for check in result.axioms)
        row |= {f"axiom: {check.axiom}": check.violation for check in result.axioms}
        return row

    def frame(self) -> pd.DataFrame:
        """One line for each explainer."""
        import pandas as pd

        return pd.DataFrame({r.name: self.row(r) for r in self.results}).T.rename_axis("explainer")

    def prototypes_frame(self) -> pd.DataFrame:
        """One line for each explainer and prototype."""
        import pandas as pd

        frames = []
        for result in self.results:
            columns = {name: values.tolist() for name, values in result.per_prototype().items()}
            frames.append(pd.DataFrame({"explainer": result.name, "prototype": result.prototypes, **columns}))
        return pd.concat(frames, ignore_index=True)

    def table(self) -> Group:
        """For the terminal."""
        from protopfaith.show.faithfulness.tables import terminal_tables

        return terminal_tables(self)

    def remarks(self) -> list[str]:
        """Sentences that belong to the tables."""
        n, total = len(self.prototypes), self.health.distinct.total
        said = [
            f"AOPC: mean of s(image) - s(image with pixels removed) over {n} of {total} prototypes on their "
            f"source images and T = {self.steps} steps; negative and large is good. All explainers remove "
            f"the same regions ({self.players}); own units: the map's own resolution. The paper's normalizer "
            "is 1/(C + K + T - 1).",
        ]
        fewer = [f"{r.name} ({len(r.prototypes)})" for r in self.results if len(r.prototypes) < n]
        if fewer:
            said.append(
                f"Judged on fewer prototypes: {', '.join(fewer)}. Compare them with the others on the "
                "prototypes that all have in common."
            )
        if self.truth is not None:
            reliability, ranks = _mean(self.truth.reliability), _mean(self.truth.rank_reliability)
            said.append(
                "Pearson, Spearman and error are against the true Shapley values of "
                f"{len(self.truth_prototypes)} prototypes, from {self.truth.evaluations:,} evaluations each, "
                f"whose own reliability is {reliability:.3f}, so that Pearson's correlation ends at about "
                f"{max(reliability, 0) ** 0.5:.3f}; the rank correlation between its halves is {ranks:.3f}, "
                "as the order of players that hardly matter is noise."
            )
        if not math.isnan(self.object_share):
            said.append(f"The object covers {self.object_share:.0%} of the pixels.")
        said.append(
            "Linearity is expected to fail under log similarity: it is why networks here use distances."
        )
        said.append(health_sentence(self.health))
        said += [f"{name} was left out: {why}" for name, why in self.skipped.items()]
        return said


def health_sentence(health: PrototypeHealth) -> str:
    """How many prototypes are distinct and alive, for people."""
    distinct = health.distinct
    return (
        f"{distinct.distinct} of {distinct.total} prototypes are distinct, {len(health.collapsed)} classes "
        f"have collapsed onto one, and {len(health.dead)} prototypes are dead (their distance hardly varies "
        "over images)."
    )


def worst(checks: Sequence[Sequence[AxiomCheck]]) -> tuple[AxiomCheck, ...]:
    """Of checks on several prototypes, for each axiom the one furthest beyond what is allowed."""

    def excess(check: AxiomCheck) -> float:
        return -math.inf if math.isnan(check.violation) else check.violation / check.allowed

    return tuple(max(same, key=excess) for same in zip(*checks, strict=True))


def _mean(values: Tensor) -> float:
    return float(torch.nanmean(values.double())) if len(values) else math.nan

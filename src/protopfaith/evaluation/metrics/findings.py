"""How well a network decides on several findings: AUROC, average precision, and sensitivity and specificity
at a threshold, each with a 95% interval from drawing whole patients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from protopfaith.annotations import check_arguments
from protopfaith.anonymous import safe_cell
from protopfaith.arguments import finite_number, shown, tensor, whole_number
from protopfaith.csvfile import write_rows
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.metrics.bootstrap import (
    RESAMPLES,
    Interval,
    group_numbers,
    group_weights,
    interval_of,
    weighted_auroc,
)
from protopfaith.evaluation.metrics.calibration import BINS, Steps, in_steps

if TYPE_CHECKING:
    from rich.table import Table

SCORES = ("auroc", "average_precision", "sensitivity", "specificity")
ERRORS = ("calibration_error", "raw_calibration_error")
NO_STEPS = Steps((), (), ())
HEADINGS = ("AUROC", "average\nprecision", "sensitivity", "specificity", "calibration\nerror")


@dataclass(frozen=True)
class FindingScores:
    """How well one finding is decided; not-a-number where images lack the finding, or all have it.

    Args:
        name: of the finding
        present: images that have it
        absent: images that have it not
        threshold: probability from which it counts as present
        auroc: share of pairs of images, with and without it, in the right order
        average_precision: mean precision over all thresholds, weighted by the recall that each adds
        sensitivity: at the threshold, share of the images that have it and are found
        specificity: at the threshold, share of the images that have it not and are left alone
        calibration_error: how far probabilities are from frequencies, see `finding_calibration_error`
        raw_calibration_error: the same without calibration, where that is known
        steps: the images by their probability, which the calibration error is computed from

    >>> sure = Interval(1.0, 0.9, 1.0)
    >>> FindingScores("edema", 20, 60, 0.5, sure, sure, sure, sure).auroc.low
    0.9
    """

    name: str
    present: int
    absent: int
    threshold: float
    auroc: Interval
    average_precision: Interval
    sensitivity: Interval
    specificity: Interval
    calibration_error: float = math.nan
    raw_calibration_error: float = math.nan
    steps: Steps = NO_STEPS


@dataclass(frozen=True)
class FindingsEvaluation:
    """What came out for images with several findings.

    Args:
        findings: the scores of each
        images: how many were judged
        groups: how many patients, or images that stand alone, they come from
        mean_auroc: over the findings that have one
        mean_average_precision: likewise

    >>> probabilities = torch.tensor([[0.9], [0.2], [0.7], [0.4]])
    >>> labels = torch.tensor([[1.0], [0.0], [1.0], [0.0]])
    >>> judge_findings(probabilities, labels, ["edema"], resamples=50).findings[0].auroc.value
    1.0
    """

    findings: tuple[FindingScores, ...]
    images: int
    groups: int
    mean_auroc: Interval
    mean_average_precision: Interval

    def __repr__(self) -> str:
        return f"FindingsEvaluation({self.images} images, mean AUROC {self.mean_auroc})"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts, for JSON; not-a-number becomes None, as JSON has none."""
        return {
            "images": self.images,
            "groups": self.groups,
            "mean_auroc": self.mean_auroc.to_dict(),
            "mean_average_precision": self.mean_average_precision.to_dict(),
            "findings": [
                {
                    "name": one.name,
                    "present": one.present,
                    "absent": one.absent,
                    "threshold": one.threshold,
                    **{score: getattr(one, score).to_dict() for score in SCORES},
                    **{name: _number(getattr(one, name)) for name in ERRORS},
                    "steps": {key: list(values) for key, values in asdict(one.steps).items()},
                }
                for one in self.findings
            ],
        }

    def table(self) -> Table:
        """One line for each finding and one for all, for `rich.print`."""
        from rich.box import SIMPLE_HEAD
        from rich.markup import escape
        from rich.table import Table

        stood = "" if self.groups == self.images else f" of {self.groups} patients"
        title = f"{self.images} images{stood}, mean AUROC {self.mean_auroc.value:.3f}"
        table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        table.add_column("finding\nimages with it\nthreshold", overflow="fold")
        for name in HEADINGS:
            table.add_column(name, justify="right", no_wrap=True)  # narrow, so that 80 letters hold them all
        for one in self.findings:
            table.add_row(
                f"{escape(one.name)}\n{one.present} of {one.present + one.absent}\n{one.threshold:.3f}",
                *(cell_of(getattr(one, score)) for score in SCORES),
                _error_cell(one),
            )
        table.add_section()
        table.add_row("mean", cell_of(self.mean_auroc), cell_of(self.mean_average_precision), style="bold")
        return table

    def write_csv(self, path: Path) -> None:
        """One row for each finding, with the ends of all intervals.

        Args:
            path: of the file; one that is there is replaced
        """
        headings = [f"{score}{end}" for score in SCORES for end in ("", "_low", "_high")]
        rows: list[list[object]] = [["finding", "present", "absent", "threshold", *headings, *ERRORS]]
        for one in self.findings:
            ends = [value for score in SCORES for value in getattr(one, score).to_dict().values()]
            ends += [_number(getattr(one, name)) for name in ERRORS]
            texts = ["" if value is None else value for value in ends]
            rows.append([safe_cell(one.name), one.present, one.absent, one.threshold, *texts])
        write_rows(path, rows)


def judge_findings(
    probabilities: Tensor,
    labels: Tensor,
    names: Sequence[str],
    *,
    thresholds: Sequence[float] | None = None,
    groups: Sequence[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    raw: Tensor | None = None,
) -> FindingsEvaluation:
    """Judges probabilities (N, C) against labels (N, C): 1, 0, or not-a-number where a label is not known.

    Args:
        probabilities: of the findings
        labels: what is known
        names: of the findings
        thresholds: from which probability each counts as present; one half by default
        groups: which images belong together; None or an empty text: an image stands alone
        resamples: how many sets are drawn for the intervals
        seed: of the draws
        raw: the probabilities without calibration, (N, C)

    >>> p, y = torch.tensor([[0.9], [0.2], [0.1]]), torch.tensor([[1.0], [0.0], [float("nan")]])
    >>> found = judge_findings(p, y, ["edema"], resamples=20)
    >>> found.findings[0].present, found.findings[0].absent
    (1, 1)
    """
    check_arguments(judge_findings, locals())
    whole_number(resamples, "The number of resamples", least=1, most=1_000_000)
    probabilities, labels = probabilities.detach().cpu().double(), labels.detach().cpu().double()
    thresholds = [0.5] * len(names) if thresholds is None else list(thresholds)
    tensor(labels, "Labels", "images x findings", 2)
    _check(probabilities, labels, names, thresholds, raw)
    index = group_numbers(groups if groups is not None else [""] * len(labels))
    if len(index) != len(labels):
        raise ProtoPFaithError(f"There are {len(labels)} images but {len(index)} groups; give one for each.")
    scores = partial(_scores, probabilities, labels, thresholds)
    plain = scores(torch.ones(1, len(labels), dtype=torch.float64))
    draws = _draws(scores, len(names), index, resamples, seed)
    findings = []
    for c, (name, threshold) in enumerate(zip(names, thresholds, strict=True)):
        own, steps = labels[:, c], finding_steps(probabilities[:, c], labels[:, c])
        intervals = {
            score: interval_of(float(plain[score][0, c]), draws[score][:, c], _certain(own, index, score))
            for score in SCORES
        }
        before = math.nan if raw is None else finding_calibration_error(raw[:, c].cpu(), own)
        present, absent = int((own == 1).sum()), int((own == 0).sum())
        findings.append(
            FindingScores(
                name,
                present,
                absent,
                threshold,
                **intervals,
                calibration_error=steps.error,
                raw_calibration_error=before,
                steps=steps,
            )
        )
    auroc, precision = (
        interval_of(float(plain[score].nanmean()), draws[score].nanmean(1))
        for score in ("auroc", "average_precision")
    )
    return FindingsEvaluation(tuple(findings), len(labels), int(index.max()) + 1, auroc, precision)


def _draws(
    scores: Callable[[Tensor], dict[str, Tensor]], findings: int, index: Tensor, resamples: int, seed: int
) -> dict[str, Tensor]:
    """Every score of every finding on sets that are drawn for the intervals, (R, C); not-a-number where there
    is one group alone, which leaves nothing to draw."""
    count = int(index.max()) + 1
    if count == 1:
        return dict.fromkeys(SCORES, torch.full((resamples, findings), math.nan, dtype=torch.float64))
    drawn = [scores(weights) for weights in group_weights(index, count, resamples, seed)]
    return {score: torch.cat([one[score] for one in drawn]) for score in SCORES}


def _check(
    probabilities: Tensor,
    labels: Tensor,
    names: Sequence[str],
    thresholds: Sequence[float],
    raw: Tensor | None,
) -> None:
    expected = (len(labels), len(names))
    if probabilities.shape != expected or labels.shape != expected or not len(labels):
        raise ProtoPFaithError(
            f"Judging {len(names)} findings needs as many probabilities and labels of each image, at least "
            f"one, but got {tuple(probabilities.shape)} and {tuple(labels.shape)}."
        )
    if len(thresholds) != len(names):
        raise ProtoPFaithError(f"{len(names)} findings need as many thresholds, not {len(thresholds)}.")
    for name, threshold in zip(names, thresholds, strict=True):
        finite_number(threshold, f"The threshold of {shown(name)}")
    broken = int((~probabilities.isfinite().all(1)).sum())
    if broken:
        raise ProtoPFaithError(
            f"The probabilities of {broken} of {len(labels)} images are not finite and cannot be judged; "
            "check that the network's weights and its images are finite."
        )
    for given in (probabilities, raw):
        if given is not None and not bool(((given >= 0) & (given <= 1)).all()):
            raise ProtoPFaithError("Probabilities are numbers from 0 to 1; give those, and not logits.")
    if raw is not None and raw.shape != probabilities.shape:
        raise ProtoPFaithError(
            f"The probabilities without calibration must have the shape of the others, "
            f"{tuple(probabilities.shape)}, not {tuple(raw.shape)}."
        )


def _scores(
    probabilities: Tensor, labels: Tensor, thresholds: Sequence[float], weights: Tensor
) -> dict[str, Tensor]:
    """Every score of every finding for weighted images: each (R, C)."""
    columns: dict[str, list[Tensor]] = {score: [] for score in SCORES}
    for c, threshold in enumerate(thresholds):
        known = ~labels[:, c].isnan()
        p, there, w = probabilities[known, c], labels[known, c] == 1, weights[:, known]
        called = (p >= threshold).double()
        none = torch.full((len(weights),), math.nan, dtype=torch.float64)
        both = bool(there.any()) and not bool(there.all())
        columns["auroc"].append(weighted_auroc(p, there, w) if both else none)
        columns["average_precision"].append(
            weighted_average_precision(p, there, w) if bool(there.any()) else none
        )
        columns["sensitivity"].append((w * called)[:, there].sum(1) / w[:, there].sum(1))
        columns["specificity"].append((w * (1 - called))[:, ~there].sum(1) / w[:, ~there].sum(1))
    return {score: torch.stack(values, dim=1) for score, values in columns.items()}


def weighted_average_precision(scores: Tensor, positive: Tensor, weights: Tensor) -> Tensor:
    """Precision averaged over the positive images, at the threshold that just includes each; (R,).

    Args:
        scores: (N,)
        positive: (N,), bool
        weights: (R, N), how often an image counts

    >>> scores, positive = torch.tensor([0.9, 0.8, 0.7]), torch.tensor([True, False, True])
    >>> round(float(weighted_average_precision(scores, positive, torch.ones(1, 3))), 4)
    0.8333
    """
    _, rank = (-scores).unique(return_inverse=True)  # the largest score first; equal ones together
    empty = torch.zeros(len(weights), int(rank.max()) + 1, dtype=weights.dtype)
    right = empty.index_add(1, rank[positive], weights[:, positive])
    everything = empty.index_add(1, rank, weights)
    precision = right.cumsum(1) / everything.cumsum(1).clamp_min(torch.finfo(weights.dtype).tiny)
    return (right * precision).sum(1) / right.sum(1)


def finding_calibration_error(probabilities: Tensor, labels: Tensor, bins: int = BINS) -> float:
    """The expected calibration error of one finding.

    Images are sorted by their probability into equal steps; it is how far the mean probability of a step is
    from the share of its images that have the finding, averaged over images.

    Args:
        probabilities: that it is there, (N,)
        labels: 1, 0, or not-a-number where it is not known, (N,)
        bins: steps of the probability

    >>> finding_calibration_error(torch.full((4,), 0.75), torch.tensor([1.0, 1.0, 0.0, 0.0]))
    0.25
    """
    return finding_steps(probabilities, labels, bins).error


def finding_steps(probabilities: Tensor, labels: Tensor, bins: int = BINS) -> Steps:
    """Images of which a finding is known, by its probability: how many there are, and how many have it.

    Args:
        probabilities: that it is there, (N,)
        labels: 1, 0, or not-a-number where it is not known, (N,)
        bins: steps of the probability

    >>> finding_steps(torch.tensor([0.9, 0.8, 0.1]), torch.tensor([1.0, 0.0, float("nan")]), bins=2).share
    (0.0, 0.5)
    """
    known = ~labels.isnan()
    return in_steps(probabilities[known], labels[known], bins)


def _certain(labels: Tensor, index: Tensor, score: str) -> int:
    """Patients that an exact bound is computed from, where a score is 0 or 1 and resamples never vary."""
    wanted = {"sensitivity": labels == 1, "specificity": labels == 0}.get(score)
    return 0 if wanted is None else len(index[wanted].unique())


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _error_cell(one: FindingScores) -> str:
    if math.isnan(one.calibration_error):
        return "-"
    raw = one.raw_calibration_error
    return f"{one.calibration_error:.3f}" + ("" if math.isnan(raw) else f"\n{raw:.3f} raw")


def cell_of(interval: Interval) -> str:
    """Three lines, so that tables stay narrow.

    >>> cell_of(Interval(0.9, 0.85, 0.95)).splitlines()
    ['0.900', '0.850 to', '0.950']
    """
    if math.isnan(interval.value):
        return "-"
    ends = "" if math.isnan(interval.low) else f"\n{interval.low:.3f} to\n{interval.high:.3f}"
    return f"{interval.value:.3f}{ends}"

"""A trained network on images with several findings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from protopfaith.annotations import check_arguments
from protopfaith.data import ImageSet, Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.metrics.findings import FindingsEvaluation, judge_findings
from protopfaith.network import PatchNetwork, probabilities
from protopfaith.training.calibration import as_calibrator
from protopfaith.training.metrics import set_logits
from protopfaith.training.reference import Reference
from protopfaith.writing import atomic


def evaluate_findings(
    model: PatchNetwork,
    images: ImageSet,
    preprocessing: Preprocessing,
    reference: Reference | None = None,
    *,
    batch_size: int = 64,
    resamples: int = 1000,
    seed: int = 0,
) -> FindingsEvaluation:
    """How well a network decides on the findings of a set, with intervals by patient.

    Args:
        model: a network that decides on several findings
        images: with what is known of them
        preprocessing: how they are prepared for the network
        reference: has calibration and thresholds; without it, thresholds of one half
        batch_size: images per forward pass
        resamples: how many sets are drawn for the intervals
        seed: of the draws

    >>> from protopfaith.data import load_data
    >>> from protopfaith.network import XProtoNet
    >>> data = load_data("birds_multilabel", size=32, train=32, validation=32, test=32)
    >>> model = XProtoNet("small", list(data.classes), 2, 8).eval()
    >>> len(evaluate_findings(model, data.test, data.preprocessing, resamples=10).findings)
    6
    """
    check_arguments(evaluate_findings, locals())
    if not len(images):
        raise ProtoPFaithError("The set holds no images to evaluate on; choose another split.")
    logits = set_logits(model, images, preprocessing, batch_size)
    return judge_logits(
        logits,
        images.labels,
        model.class_names,
        reference,
        groups=[record.group for record in images.records],
        resamples=resamples,
        seed=seed,
    )


def judge_logits(
    logits: Tensor,
    labels: Tensor,
    names: Sequence[str],
    reference: Reference | None,
    *,
    with_raw: bool = True,
    **drawn: Any,
) -> FindingsEvaluation:
    """Judges logits (N, C) against labels by the calibration and the thresholds of a reference; the other
    arguments are those of `judge_findings`. `with_raw` also measures the calibration error without
    calibration."""
    calibrator = None if reference is None else reference.calibrator
    rules = None if reference is None else reference.rules
    return judge_findings(
        calibrated(logits, reference),
        labels,
        names,
        thresholds=None if rules is None else [rule.threshold for rule in rules],
        raw=probabilities(logits.double(), "several") if with_raw and calibrator is not None else None,
        **drawn,
    )


def calibrated(logits: Tensor, reference: Reference | None) -> Tensor:
    """The probabilities of findings, calibrated where the reference knows how."""
    calibrator = as_calibrator(None if reference is None else reference.calibrator)
    return probabilities(calibrator(logits.double()), "several")


def write_findings(folder: Path, name: str, result: FindingsEvaluation) -> None:
    """`name`.json and `name`.csv, and how often findings are there by their probability as
    `name`-reliability.png."""
    from protopfaith.show.reliability import finding_reliability

    with atomic(folder / f"{name}.json") as partial:
        partial.write_text(json.dumps(result.to_dict(), indent=2))
    result.write_csv(folder / f"{name}.csv")
    with atomic(folder / f"{name}-reliability.png") as partial:
        finding_reliability(result).savefig(partial, format="png")

"""The small run and its explanations that the tests of explanations use, and a judgment of explainers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from protopfaith.evaluation.metrics.axioms import AxiomCheck
from protopfaith.evaluation.metrics.sanity import PrototypeHealth
from protopfaith.evaluation.metrics.truth import Truth
from protopfaith.evaluation.results import ExplainerResult, Faithfulness
from protopfaith.network import DistinctPrototypes
from tests.explanation.conftest import *  # noqa: F403

KINDS = ("zero", "own", "blur", "mean", "insertion")


def judged(name: str, prototypes: tuple[int, ...], slope: float) -> ExplainerResult:
    """An explainer whose curves rise by `slope`, with small differences between prototypes."""
    n = len(prototypes)
    steps = torch.linspace(0, 1, 11)
    differences = 1 + 0.02 * torch.arange(n)[:, None]
    curves = dict.fromkeys(KINDS, 1 + slope * differences * steps)
    numbers = torch.linspace(0.8, 0.9, n)
    return ExplainerResult(
        name,
        prototypes,
        curves,
        {"pearson": numbers, "spearman": numbers - 0.1, "relative_error": 1 - numbers},
        completeness_gap=torch.full((n,), 0.01),
        seconds=torch.full((n,), 0.5),
        inside=torch.full((n,), 0.6),
        axioms=(AxiomCheck("completeness", 0.001, 0.01), AxiomCheck("linearity", 0.2, 0.01)),
        randomization=torch.tensor([0.1]),
        stability=torch.tensor([0.9]),
    )


@pytest.fixture
def judgment(tmp_path: Path) -> Faithfulness:
    """Three explainers on twelve prototypes, one of them on two only."""
    everything = tuple(range(12))
    return Faithfulness(
        tmp_path,
        everything,
        classes=4,
        prototypes_per_class=3,
        steps=10,
        players="36 players",
        n_players=36,
        results=(
            judged("ours", everything, 2.0),
            judged("random", everything, 1.0),
            judged("dasp", (0, 1), 3.0),
        ),
        skipped={"owen": "it is <not> installed"},
        truth=Truth(torch.rand(2, 12, 36), 4096),
        truth_prototypes=everything,
        object_share=0.3,
        health=PrototypeHealth(
            DistinctPrototypes(tuple((k,) for k in everything), (3,) * 4, 12), (3,) * 4, torch.ones(12)
        ),
        settings={"budget": 512},
    )

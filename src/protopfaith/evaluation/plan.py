"""What decides the results, besides the network and its images."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from protopfaith.evaluation.explainers import Options

TRUTH = "truth"
"""The name of the true values where explainers have theirs."""
COSTS_ONLY = ("memory", "batch_size", "moment_batch")  # of the options: they decide time, not results


@dataclass(frozen=True)
class Plan:
    """How explainers work and on how much they are judged."""

    options: Options
    steps: int
    truth_budget: int
    checked: int
    """Images for axioms and sanity checks."""
    mean_color: tuple[float, ...]
    quantus: bool = False
    limits: Mapping[str, int] = field(default_factory=dict)
    """Prototypes at most, for explainers (or the truth) that cost too much on all."""

    def of_explainer(self, name: str) -> dict[str, Any]:
        """The settings that decide an explanation."""
        kept = asdict(self.options)
        players = kept.pop("players")["labels"].numpy().tobytes()
        for name_of_cost in COSTS_ONLY:
            kept.pop(name_of_cost)
        return {"explainer": name, "players": hashlib.sha256(players).hexdigest(), **kept}

"""The page of a case as it is when it is opened; from then on its blocks are replaced as they change."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from protopfaith.serve.case import Case
from protopfaith.serve.compare import FIRST_CHOICE, choices
from protopfaith.serve.networks import Network
from protopfaith.serve.regions import usual_side
from protopfaith.show.wording.sharpness import strength

BLOCKS = ("answer", "pictures", "bars", "progress", "findings", "evidence", "tree", "prototypes", "trust")
PRECISIONS = (0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01)  # the slider's steps, as in explorer.js
BASELINES = {"zero": "a plain color", "blur": "a blurred image", "mean": "the mean color of training images"}
SUPERPIXELS = (30, 60, 120)


def case_view(case: Case, networks: Sequence[Network]) -> dict[str, Any]:
    """What the template of a case shows.

    Args:
        case: the case.
        networks: all of the server, for asking another one.
    """
    _, written = case.live.since(0)
    decision = case.decision
    return {
        "case": case,
        "blocks": {name: written.get(name, "") for name in BLOCKS},
        "hidden": json.dumps(case.hidden),
        "precision_step": min(range(len(PRECISIONS)), key=lambda i: abs(PRECISIONS[i] - case.precision)),
        "names": case.network.class_names,
        "target": None if decision is None else decision.target,
        "versus": case.question.versus,
        "regions": region_choices(case),
        "players": case.question.players or f"windows:{usual_side(case.picture.input)}",
        "baselines": BASELINES,
        "others": [network for network in networks if network is not case.network],
        "named": [] if decision is None else decision.named,
        "explainers": choices(),
        "first_choice": FIRST_CHOICE,
    }


def region_choices(case: Case) -> list[tuple[str, str]]:
    """The regions to choose from: windows from large to small, superpixels, and those drawn before."""
    side, usual = max(case.picture.input.shape[-2:]), usual_side(case.picture.input)
    sides = sorted({usual, *(size for size in (32, 16, 8, 4) if 3 <= side / size <= 32)}, reverse=True)
    asked = case.question.players
    windows = [(f"windows:{size}", f"squares of {size} pixels") for size in sides]
    pieces = [(f"superpixels:{count}", f"about {count} superpixels") for count in SUPERPIXELS]
    found = [*windows, *pieces]
    if asked == "drawn":
        found.append(("drawn", "drawn by hand"))
    elif asked and asked not in dict(found):
        found.append((asked, asked.replace(":", " ")))
    return found


def state_of(case: Case) -> str:
    """How far a case is, for a list."""
    if case.result is None:
        return case.stage
    return f"{case.evaluations:,} evaluations, strengths {strength(case.result.precision)}"

"""From a row back to an explanation: the network decides again, the values are those of the row."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.assembly import assemble
from protopfaith.explanation.bulk.dataset import Bulk
from protopfaith.explanation.bulk.identity import check_decision, check_file
from protopfaith.explanation.bulk.locations import find_location
from protopfaith.explanation.decision import Decision, decide
from protopfaith.explanation.explainer import Explainer
from protopfaith.explanation.explanation import Explanation
from protopfaith.explanation.game import ROUNDING, output_names
from protopfaith.explanation.regions import RegionValues
from protopfaith.explanation.settings import Settings
from protopfaith.files import reason
from protopfaith.shapley import Attribution, Players
from protopfaith.training import Run


def rebuild(
    bulk: Bulk,
    image: str,
    *,
    run: Path | str | None = None,
    file: Path | str | None = None,
    device: str = "cpu",
) -> Explanation:
    """The explanation of one image of a data set; only the decision is computed again.

    Args:
        bulk: the data set
        image: its name there
        run: the run, where it is not where it was
        file: the image, where it is not where it was
        device: where to compute
    """
    row = bulk.row(image)
    if row["error"] is not None:
        raise ProtoPFaithError(f"The image {image} could not be explained: {row['error']}")
    known_run, root, item = (
        find_location(bulk.folder, image) if run is None or file is None else (None, None, None)
    )
    place = run or known_run
    if place is None:
        raise ProtoPFaithError(f"{bulk.folder} does not say which run it is of; give it with --run.")
    explainer = Explainer(Run(place, root), device=device)
    if explainer.weights_hash != bulk.manifest.weights:
        raise ProtoPFaithError(
            f"{bulk.folder} holds explanations of another network than {place}; give its run."
        )
    if file is not None:
        return _explanation(explainer, bulk, row, Path(file))
    assert item is not None
    with item.file() as opened:
        return _explanation(explainer, bulk, row, opened)


def _explanation(explainer: Explainer, bulk: Bulk, row: dict[str, Any], file: Path) -> Explanation:
    start = time.perf_counter()
    check_file(file, row, bulk.folder)
    with _naming(bulk, "settings"):
        settings = _settings(bulk).on(explainer.device, explainer.size)
        asked = bulk.manifest.settings
        autocast = None if asked["autocast"] is None else str(asked["autocast"]).removeprefix("torch.")
        versus, options = asked["versus"], dict(asked["options"])
    decision = decide(
        explainer.model,
        explainer.open(file, row["image"]),
        row["class"],
        versus,
        settings=settings,
        temperature=explainer.calibrator,
    )
    with _naming(bulk, "values"):
        check_decision(decision, row, bulk.folder)
        attribution = _attribution(explainer, decision, settings, bulk, row)
    found = assemble(
        explainer.model,
        decision,
        attribution,
        settings,
        weights_hash=explainer.weights_hash,
        reference=explainer.reference,
        sides={},
        second=None,
        coarse=False,
        seconds=time.perf_counter() - start,
    )
    facts = {**found.settings, "autocast": autocast, "options": options}
    with _naming(bulk, "signs"):
        return replace(_with_signs(found, row), path="", seconds=row["seconds"], settings=facts)


@contextmanager
def _naming(bulk: Bulk, what: str) -> Iterator[None]:
    """Whatever damaged numbers lead to is told as that."""
    try:
        yield
    except ProtoPFaithError:
        raise
    except (LookupError, TypeError, ValueError, RuntimeError) as error:
        raise ProtoPFaithError(
            f"The {what} of this image in {bulk.folder} are damaged ({reason(error)}); explain it again, "
            "into another folder."
        ) from error


def _settings(bulk: Bulk) -> Settings:
    """As far as a report needs them."""
    asked = bulk.manifest.settings
    names = ("precision", "budget", "seed", "output", "duplicate_tolerance", "source_budget", "baseline")
    known = {name: asked[name] for name in names}
    players = asked["players"]
    players = int(players) if str(players).isdecimal() else players
    return Settings(players=players, estimator=asked["estimator"], sources=False, **known)


def _attribution(
    explainer: Explainer, decision: Decision, settings: Settings, bulk: Bulk, row: dict[str, Any]
) -> Attribution:
    """What the row knows of the game; the rest is NaN."""
    players = _players(bulk, row)
    names = output_names(decision, settings)
    count = len(explainer.model.prototypes)
    empty = torch.full((count + len(names), len(players)), torch.nan, dtype=torch.float64)
    values, errors, total, gap = empty, empty.clone(), empty[:, 0].clone(), empty[:, 0].clone()
    shares = {one["prototype"]: one for one in row["prototypes"]}
    shares |= {count + names.index(one["output"]): one for one in row["others"]}
    shares[count + names.index(row["output"])] = row
    for place, one in shares.items():
        values[place], errors[place] = _numbers(one["values"]), _numbers(one["standard_errors"])
        total[place], gap[place] = one["total"], one["gap"]
    return Attribution(
        values,
        errors,
        gap,
        total,
        row["evaluations"],
        players,
        str(settings.baseline),
        settings.method,
        settings.seed,
        row["precision"],
        row["reached"],
        options={} if row["rounding"] is None else {ROUNDING: row["rounding"]},
    )


def _players(bulk: Bulk, row: dict[str, Any]) -> Players:
    if row["labels"] is not None:
        return Players.from_labels(torch.tensor(row["labels"]).reshape(bulk.manifest.size))
    if bulk.manifest.window is None:
        raise ValueError("it has no regions")
    return Players.windows(bulk.manifest.size, bulk.manifest.window)


def _with_signs(found: Explanation, row: dict[str, Any]) -> Explanation:
    """The signs that were known when the game was played."""

    def signed(regions: RegionValues, one: dict[str, Any]) -> RegionValues:
        return replace(regions, sure=torch.tensor(one["decided"]))

    prototypes = {one["prototype"]: one for one in row["prototypes"]}
    others = {one["output"]: one for one in row["others"]}
    return replace(
        found,
        class_map=signed(found.class_map, row),
        other_maps={
            name: signed(one, others[name]) for name, one in found.other_maps.items() if name in others
        },
        evidence=tuple(
            replace(one, test=signed(one.test, prototypes[one.prototype])) for one in found.evidence
        ),
    )


def _numbers(values: list[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)

"""Measurements on explainers, made as shards or by workers of Ray, into the folder of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from protopfaith.annotations import check_arguments
from protopfaith.cluster import SetAside, check_address, needs_of, on_ray
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.bench.request import Request, make_request
from protopfaith.evaluation.bench.runner import Bench
from protopfaith.evaluation.bench.settings import TRUTH
from protopfaith.progress import Bar
from protopfaith.shards import WHOLE, share
from protopfaith.training import Run

MAPS, CHECKS, CURVES = "maps", "checks", "curves"
Task = tuple[str, str, int]  # an explainer (or the truth), what to measure, on which of its images


def measure_share(
    run: Run | Path | str,
    out_folder: Path | str | None = None,
    *,
    shard: Sequence[int] = WHOLE,
    progress: bool = True,
    **asked: Any,
) -> int:
    """Does a share of what `faithfulness` measures; whoever finds everything there calls `faithfulness`.

    Args:
        run: a training run, or its folder
        out_folder: for results; `faithfulness` in the run's folder by default
        shard: (i, n) does the i-th of n shares
        progress: whether to show a bar
        asked: the same as for `faithfulness`

    Returns:
        How many measurements are not there yet: other shards'.

    >>> from tempfile import mkdtemp
    >>> quick = dict(prototypes=1, steps=5, players=16, budget=64, truth_budget=0, checked=1, progress=False)
    >>> folder = mkdtemp()
    >>> measure_share("runs/birds", folder, explainers=["owen", "random"], shard=(1, 2), **quick)
    2
    >>> measure_share("runs/birds", folder, explainers=["owen", "random"], shard=(2, 2), **quick)
    0
    """
    check_arguments(measure_share, locals())
    request = make_request(run, out_folder, **asked)
    bench, _ = request.open(_silent)
    tasks = tasks_of(bench, request)
    own = [task for task in share(tasks, shard) if not is_done(bench, task)]
    with Bar(progress) as bar:
        for name, what, place in bar.track(own, "measuring", len(own)):
            try:
                do(bench, (name, what, place))
            except ProtoPFaithError:  # told by faithfulness, which leaves that explainer out
                continue
    return sum(not is_done(bench, task) for task in tasks if task not in own)


def measure_on_ray(request: Request, address: str, bench: Bench, bar: Bar) -> dict[str, str]:
    """Fills the folder of results with all measurements.

    Args:
        request: what is measured
        address: `"local"`, or that of a cluster
        bench: opened for it
        bar: of progress

    Returns:
        Explainers that killed their workers, and why they were set aside.
    """
    check_address(address)
    threads, kind = torch.get_num_threads(), torch.device(request.device).type
    place = Run(request.run.folder.absolute())
    place.root = request.run.trusted_root()  # perhaps on the workers alone
    remote = replace(request, run=place, folder=request.folder.absolute(), device=kind)
    tasks = [task for task in tasks_of(bench, request) if not is_done(bench, task)]
    bar.begin("measuring", total=len(tasks) + len(request.names))
    aside: dict[str, str] = {}
    curves = ((name, CURVES, 0) for name in request.names if name not in aside)
    needs = needs_of(kind, threads)
    for (name, what, _), answer in on_ray(
        address,
        BenchWorker,
        (remote, threads),
        tasks,
        curves,
        needs=needs,
        given=lambda task: task,
        ahead=1,
    ):
        bar.update(f"{name}: {what}")
        bar.advance()
        if isinstance(answer, SetAside):
            aside.setdefault(name, answer.why)
    if TRUTH in aside:
        raise ProtoPFaithError(
            f"The true values could not be computed: {aside[TRUTH]} Leave them out with truth_budget=0."
        )
    return aside


def tasks_of(bench: Bench, request: Request) -> list[Task]:
    """Everything that can be measured on its own, in the same order everywhere."""
    names = [*([TRUTH] if request.settings.truth_budget else []), *request.names]
    maps = [(name, MAPS, place) for name in names for place in range(len(bench.subjects_of(name)))]
    checked = {name: min(request.settings.checked, len(bench.subjects_of(name))) for name in request.names}
    return maps + [(name, CHECKS, place) for name in request.names for place in range(checked[name])]


def is_done(bench: Bench, task: Task) -> bool:
    """Whether its result is in the folder."""
    name, what, place = task
    subject = bench.subjects_of(name)[place]
    where = bench if what == MAPS else bench.checks
    return where.is_measured(name, subject)


def do(bench: Bench, task: Task) -> None:
    """Makes a measurement, unless its result is there."""
    name, what, place = task
    if what == CURVES:  # needs the maps on all images
        bench.result(name, None)
    elif what == MAPS:
        bench.measure(name, bench.subjects_of(name)[place])
    else:
        bench.checks.measure(name, bench.subjects_of(name)[place])


class BenchWorker:
    """A bench, opened once; what it measures goes to the folder of results.

    Args:
        request: what is measured
        threads: of a CPU, which rounding depends on
    """

    def __init__(self, request: Request, threads: int):
        if request.device == "cpu":
            torch.set_num_threads(threads)
        self.bench, _ = request.open(_silent)

    def answer(self, name: str, what: str, place: int) -> str | None:
        """None, or why it could not be measured: `faithfulness` then finds that out again, and says so."""
        try:
            do(self.bench, (name, what, place))
        except ProtoPFaithError as error:
            return str(error)
        return None


def _silent(what: str) -> None:
    """No progress."""

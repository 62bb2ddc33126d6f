"""Prototypes on their source images, explained as shards or by workers of Ray, into the run's cache."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from protopfaith.annotations import check_arguments
from protopfaith.cluster import SetAside, check_address, needs_of, on_ray
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.explainer import Explainer, as_explainer
from protopfaith.explanation.game import check_game
from protopfaith.explanation.settings import Settings
from protopfaith.listening import STAGES, check_listener
from protopfaith.progress import Report
from protopfaith.shards import WHOLE, share
from protopfaith.training import Run


def explain_sources(
    model: Run | Path | str | Explainer,
    *,
    settings: Settings | None = None,
    shard: Sequence[int] = WHOLE,
    ray: str | None = None,
    device: torch.device | str | None = None,
    progress: Report | None = None,
    **keywords: Any,
) -> list[int]:
    """Explains prototypes on their source images into the run's cache, where `explain_prototypes` finds them.

    Args:
        model: a run, its folder, or an `Explainer` of one.
        settings: how to compute; `keywords` are fields of it.
        shard: (i, n) does the i-th of n shares of the prototypes.
        ray: `"local"`, or the address of a Ray cluster, whose workers do the work.
        device: where to compute.
        progress: gets ("prototypes", how many are done, how many there are).
        keywords: fields of `Settings`, in the place of those of `settings`.

    Returns:
        Prototypes that are not there yet: other shards'.

    >>> explain_sources("runs/birds", players=16, budget=64, seed=5, shard=(1, 2))[:3]
    [1, 3, 5]
    >>> explain_sources("runs/birds", players=16, budget=64, seed=5, shard=(2, 2))
    []
    """
    check_arguments(explain_sources, locals())
    check_listener(progress, STAGES)
    explainer = as_explainer(model, device=device)
    if explainer.run is None:
        raise ProtoPFaithError("Several programs share the cache of a run; give a run, not a network alone.")
    settings = Settings.of(settings, **keywords).on(explainer.device, explainer.size)
    every = list(range(len(explainer.model.prototypes)))
    check_game(settings, explainer.blank())
    explainer.sources.check(every)
    own = [p for p in share(every, shard) if not explainer.sources.kept(p, settings)]
    tell = progress or (lambda *_: None)
    tell("prototypes", 0, len(own))
    for done, (prototype, problem) in enumerate(_answers(explainer, settings, own, ray), 1):
        if problem is not None:
            raise ProtoPFaithError(f"Prototype {prototype} could not be explained: {problem}")
        tell("prototypes", done, len(own))
    left = [p for p in every if not explainer.sources.kept(p, settings)]
    if set(own) & set(left):
        raise ProtoPFaithError(
            f"The run {explainer.run.folder} cannot be written to, so what is computed elsewhere is not kept "
            "there; leave --shard and --ray out, or check the permissions."
        )
    return left


def _answers(explainer: Explainer, settings: Settings, own: list[int], ray: str | None) -> Any:
    """Pairs of a prototype and what went wrong, or None; those set aside come last."""
    if ray is None:
        for prototype in own:
            explainer.sources.explain([prototype], settings)
            yield prototype, None
        return
    check_address(ray)
    run, threads, kind = explainer.run, torch.get_num_threads(), explainer.device.type
    assert run is not None
    aside = []
    if own:
        arguments = (run.folder.absolute(), run.trusted_root(), kind, settings, threads)
        for prototype, answer in on_ray(ray, SourceWorker, arguments, own, needs=needs_of(kind, threads)):
            problem = answer.why if isinstance(answer, SetAside) else answer
            if problem is None:
                yield prototype, None
            else:
                aside.append((prototype, problem))
    yield from aside


class SourceWorker:
    """A network, loaded once; what it explains goes to the run's cache.

    Args:
        folder: of the run
        root: of its images, if they moved
        device: where to compute
        settings: how to explain
        threads: of a CPU, which rounding depends on
    """

    def __init__(self, folder: Path, root: Path | None, device: str, settings: Settings, threads: int):
        if device == "cpu":
            torch.set_num_threads(threads)
        self.explainer, self.settings = Explainer(Run(folder, root), device=device), settings

    def answer(self, prototype: int) -> str | None:
        """None, or why it could not be explained."""
        try:
            self.explainer.sources.explain([prototype], self.settings)
        except ProtoPFaithError as error:
            return str(error)
        return None

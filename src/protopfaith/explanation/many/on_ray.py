"""The same on Ray: actors that load the network once, one writer, and a list that decides all."""

from __future__ import annotations

import logging
import tempfile
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.explainer import Explainer
from protopfaith.explanation.many.dataset import Manifest
from protopfaith.explanation.many.inputs import Item
from protopfaith.explanation.many.schema import failed_row
from protopfaith.files import reason
from protopfaith.training import Run

if TYPE_CHECKING:
    from protopfaith.explanation.many.work import Request, Work

LOCAL = "local"
logger = logging.getLogger("protopfaith")
TRIES = 3  # workers that one image may kill
SHIPPED = ("recipe.yaml", "model.safetensors", "environment.json", "reference.json")
PATIENCE = 60.0  # seconds without anything, after which that is said
AHEAD = 2  # images that wait at each actor, so that it never waits itself


def ray_module() -> Any:
    """Ray, which is an extra."""
    try:
        import ray
    except ImportError as error:
        raise ProtoPFaithError("--ray needs Ray; install it with: pip install 'protopfaith[ray]'.") from error
    return ray


def answers_on_ray(
    explainer: Explainer, request: Request, work: Work, *, address: str, ship: bool
) -> Iterator[dict[str, Any]]:
    """Rows as they are done, in any order; what each row holds does not depend on who computed it.

    Args:
        explainer: of a run
        request: what is asked
        work: what is left to do
        address: `"local"`, or that of a cluster
        ship: send run and images along
    """
    if explainer.run is None:
        raise ProtoPFaithError("Workers of Ray load a run by themselves; give a run, not a network alone.")
    ray = ray_module()
    begun = not ray.is_initialized()
    if begun:
        _connect(ray, address)
    try:
        crew = _Crew(ray, explainer, request, work, ship)
        yield from crew.rows()
    finally:
        if begun:
            ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    options = {"log_to_driver": False, "logging_level": "error", "configure_logging": False}
    try:
        if address == LOCAL:
            ray.init(address="local", include_dashboard=False, **options)
        else:
            ray.init(address=address, **options)
    except Exception as error:
        raise ProtoPFaithError(
            f"There is no Ray cluster at {address!r} ({reason(error)}); check the address, or write --ray "
            "local."
        ) from error


class _Crew:
    """The actors and what each of them is doing."""

    def __init__(self, ray: Any, explainer: Explainer, request: Request, work: Work, ship: bool):
        self.ray, self.work, self.ship = ray, work, ship
        run = explainer.run
        assert run is not None
        threads, kind = work.bulk.manifest.threads, explainer.device.type
        needs = {"num_gpus": 1, "num_cpus": 1} if kind == "cuda" else {"num_cpus": threads}
        self.size = _how_many(ray, needs)
        place = {name: (run.folder / name).read_bytes() for name in SHIPPED if (run.folder / name).is_file()}
        given = ray.put(place) if ship else str(run.folder.absolute())
        actor = ray.remote(**needs, max_restarts=0)(RayWorker)
        self.make = lambda: actor.remote(given, kind, request, work.bulk.manifest)
        self.waiting = deque(work.positions())
        self.suspects: deque[int] = deque()  # images that were at hand when a worker died
        self.tries: dict[int, int] = {}
        self.doing: dict[Any, tuple[Any, int]] = {}  # reference of an answer to actor and image
        self.coming: dict[Any, Any] = {}  # reference of the first word of an actor to the actor
        self.idle: list[Any] = []  # actors, as often as they could take an image more
        self.failed_starts = 0

    def rows(self) -> Iterator[dict[str, Any]]:
        """Keeps everybody busy until nothing is left."""
        for _ in range(min(self.size, len(self.waiting))):
            self._hire()
        while self.doing or self.waiting or self.suspects:
            ready, _ = self.ray.wait([*self.doing, *self.coming], num_returns=1, timeout=PATIENCE)
            if not ready:
                if not self.doing:
                    logger.warning("Waiting for workers to start, or for room in the Ray cluster.")
            elif ready[0] in self.coming:
                self._welcome(ready[0])
            else:
                yield from self._answer(ready[0])

    def _hire(self) -> None:
        """A new actor, which is given nothing before it is there: there may be no room for it."""
        actor = self.make()
        self.coming[actor.ready.remote()] = actor

    def _welcome(self, reference: Any) -> None:
        actor = self.coming.pop(reference)
        try:
            self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            self.failed_starts += 1
            if self.failed_starts >= TRIES:
                why = reason(error)[-160:]
                raise ProtoPFaithError(
                    f"Workers of Ray cannot load the run ({why}); let them see the same files, or send them "
                    "along with --ship."
                ) from error
            self._hire()
            return
        self.failed_starts = 0
        self.idle += [actor] * AHEAD
        self._give()

    def _answer(self, reference: Any) -> Iterator[dict[str, Any]]:
        actor, position = self.doing.pop(reference)
        try:
            yield self.ray.get(reference)
        except self.ray.exceptions.RayActorError as error:
            yield from self._lost(actor, position, error)
            return
        except self.ray.exceptions.RayError as error:  # what it was sent cannot be read, for example
            yield self._set_aside(position, f"A worker of Ray failed ({reason(error)}).")
        self.idle.append(actor)
        self._give()

    def _give(self) -> None:
        """To each actor as many images as it has room for; a suspect only to one that does nothing else."""
        free, self.idle = self.idle, []
        for actor in free:
            position = self._next(self._at_hand(actor))
            if position is None:
                self.idle.append(actor)
                continue
            item = self.work.items[position]
            content = _content(item) if self.ship else None
            self.doing[actor.answer.remote(position, item, content)] = (actor, position)

    def _next(self, at_hand: list[int]) -> int | None:
        """The image for an actor that has those at hand; None if it has to wait."""
        if any(position in self.tries for position in at_hand):
            return None
        if self.suspects and not at_hand:
            return self.suspects.popleft()
        return self.waiting.popleft() if self.waiting else None

    def _at_hand(self, actor: Any) -> list[int]:
        return [position for owner, position in self.doing.values() if owner is actor]

    def _lost(self, actor: Any, position: int, error: Exception) -> Iterator[dict[str, Any]]:
        """A worker has died: what it was doing is done again by another one, but not for ever.

        Which of several images killed it is not known (the answer to the one before may have died with it),
        so each is tried again alone; then it is.
        """
        at_hand = [position]
        for one in [one for one, (owner, _) in self.doing.items() if owner is actor]:
            _, other = self.doing.pop(one)
            try:
                yield self.ray.get(one)  # it was done before
            except self.ray.exceptions.RayError:
                at_hand.append(other)
        for one in at_hand:
            self.tries[one] = self.tries.get(one, 0) + (len(at_hand) == 1)
            if self.tries[one] < TRIES:
                self.suspects.append(one)
            else:
                yield self._set_aside(
                    one, f"It killed its worker {TRIES} times ({type(error).__name__}), so it was set aside."
                )
        self.idle = [one for one in self.idle if one is not actor]
        self._hire()
        self._give()

    def _set_aside(self, position: int, why: str) -> dict[str, Any]:
        return failed_row(self.work.items[position].name, position, why)


def _how_many(ray: Any, needs: dict[str, int]) -> int:
    there = ray.cluster_resources()
    names = {"num_cpus": "CPU", "num_gpus": "GPU"}
    found = int(min(there.get(names[kind], 0) // count for kind, count in needs.items()))
    if found < 1:
        raise ProtoPFaithError(f"The Ray cluster has no room for a worker ({needs}); add machines to it.")
    return found


def _content(item: Item) -> bytes | None:
    try:
        return item.content()
    except OSError:  # said by the worker
        return None


class RayWorker:
    """What runs as an actor: a network, loaded once.

    Args:
        run: its folder, or the content of its files
        device: where to compute
        request: what is asked
        manifest: of the data set
    """

    def __init__(self, run: str | dict[str, bytes], device: str, request: Request, manifest: Manifest):
        from protopfaith.explanation.many.work import Answering

        self.folder = tempfile.TemporaryDirectory()
        place = Path(self.folder.name)
        if isinstance(run, dict):
            for name, content in run.items():
                (place / name).write_bytes(content)
        if device == "cpu":
            torch.set_num_threads(manifest.threads)
        explainer = Explainer(Run(place if isinstance(run, dict) else run), device=device)
        self.answering = Answering(explainer, request, manifest, place)

    def ready(self) -> None:
        """Its first word."""

    def answer(self, position: int, item: Item, content: bytes | None) -> dict[str, Any]:
        """The row of one image, which is sent along or read from the file system."""
        if content is None:
            return self.answering(position, item)
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / f"image{Path(item.name).suffix}"
            copy.write_bytes(content)
            return self.answering(position, replace(item, path=str(copy), offset=0, size=None))

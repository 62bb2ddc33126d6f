"""Tasks on Ray: workers that load what they need once, and a list of tasks that decides all.

Which worker does what changes nothing. A worker that dies costs what it was doing; a task that kills its
worker three times is set aside with that reason, and the others go on.
"""

from __future__ import annotations

import logging
import re
import socket
import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from protopfaith.errors import ProtoPFaithError
from protopfaith.files import reason
from protopfaith.registry import extensions

LOCAL = "local"
TRIES = 3  # workers that one task may kill
EVERY = 5.0  # seconds
PATIENCE = 60.0  # seconds without a worker, after which that is said
ANSWER = 10.0  # seconds that a cluster has to answer a first connection
AHEAD = 2  # tasks at hand of each worker, so that it never waits
logger = logging.getLogger("protopfaith")


@dataclass(frozen=True)
class SetAside:
    """In the place of an answer: the task was given up.

    Args:
        why: in one sentence

    >>> SetAside("It killed its worker 3 times.").why
    'It killed its worker 3 times.'
    """

    why: str


def ray_module() -> Any:
    """Ray, which is an extra."""
    try:
        import ray
    except ImportError as error:
        raise ProtoPFaithError("--ray needs Ray; install it with: pip install 'protopfaith[ray]'.") from error
    return ray


def check_address(address: str) -> str:
    """Raises if there is no such address, nobody listens there, or there is no Ray.

    Args:
        address: `"local"`, or that of a cluster
    """
    if not re.fullmatch(r"local|auto|(ray://)?[^/\s]+:\d{1,5}", address):
        raise ProtoPFaithError(
            f"There is no Ray at {address!r}; write --ray local, or the address of a cluster as host:6379 or "
            "ray://host:10001."
        )
    try:
        _check_listening(address)
    except (OSError, OverflowError) as error:
        raise _unreachable(address, error) from error
    ray_module()
    return address


def needs_of(device: str, threads: int) -> dict[str, int]:
    """What a worker takes of a machine: a GPU, or as many CPUs as it has threads.

    Args:
        device: the kind of device
        threads: of a CPU

    >>> needs_of("cpu", 2)
    {'num_cpus': 2}
    """
    return {"num_gpus": 1, "num_cpus": 1} if device == "cuda" else {"num_cpus": threads}


def on_ray(
    address: str,
    worker: Callable[..., Any],
    arguments: Sequence[Any],
    tasks: Iterable[Hashable],
    *then: Iterable[Hashable],
    needs: Mapping[str, int],
    given: Callable[[Any], tuple[Any, ...]] = lambda task: (task,),
    ahead: int = AHEAD,
    at_once: int = 1,
    meanwhile: Callable[[], None] | None = None,
) -> Iterator[tuple[Any, Any]]:
    """Pairs of a task and its answer as they are done, in any order.

    Args:
        address: `"local"`, or that of a cluster
        worker: a class with a method `answer`, made once on each CPU or GPU
        arguments: of the class
        tasks: what to do
        then: tasks that begin, and are asked for, when all before are done
        needs: what a worker takes of a machine, see `needs_of`
        given: what `answer` is given for a task
        ahead: tasks that a worker has at hand, with the one that it does
        at_once: tasks that a worker does at the same time, each in a thread
        meanwhile: is called every few seconds while nothing is done
    """
    ray = ray_module()
    begun = not ray.is_initialized()
    if begun:
        _connect(ray, address)
    try:
        options: dict[str, Any] = {"needs": needs, "given": given, "ahead": ahead, "at_once": at_once}
        actors = Actors(ray, worker, arguments, meanwhile=meanwhile, **options)
        yield from actors.answers(tasks, *then)
    finally:
        if begun:
            ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    options = {"log_to_driver": False, "logging_level": "error", "configure_logging": False}
    try:
        if address == LOCAL:
            ray.init(address="local", include_dashboard=False, **options)
        else:
            _check_listening(address)
            ray.init(address=address, **options)
    except Exception as error:
        raise _unreachable(address, error) from error


def _unreachable(address: str, error: Exception) -> ProtoPFaithError:
    return ProtoPFaithError(
        f"There is no Ray cluster at {address!r} ({reason(error)}); check the address, or write --ray local."
    )


def _check_listening(address: str) -> None:
    """Raises if nobody listens at a host and port: Ray itself would try for many minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER).close()


class Actor:
    """What runs as an actor: a worker, made once.

    Args:
        modules: of the user's, to import first
        folder: where these may lie
        worker: its class
        arguments: of the class
    """

    def __init__(self, modules: Sequence[str], folder: str, worker: Callable[..., Any], *arguments: Any):
        if modules and folder not in sys.path:
            sys.path.append(folder)
        for name in modules:
            import_module(name)
        self.worker = worker(*arguments)

    def ready(self) -> None:
        """Answers once the worker is made."""

    def answer(self, *given: Any) -> Any:
        """Does a task."""
        return self.worker.answer(*given)


class Actors:
    """The actors and what each of them is doing.

    Args:
        ray: the module, connected
        worker: see `on_ray`
        arguments: of the worker
        needs: of a worker
        given: what `answer` is given for a task
        ahead: tasks that a worker has at hand, with the one that it does
        at_once: tasks that a worker does at the same time, each in a thread
        meanwhile: is called while nothing is done
    """

    def __init__(
        self,
        ray: Any,
        worker: Callable[..., Any],
        arguments: Sequence[Any],
        *,
        needs: Mapping[str, int],
        given: Callable[[Any], tuple[Any, ...]],
        ahead: int,
        at_once: int = 1,
        meanwhile: Callable[[], None] | None = None,
    ):
        self.ray, self.given, self.meanwhile = ray, given, meanwhile
        self.slots = ahead + at_once - 1
        self.size = _how_many(ray, needs)
        actor = ray.remote(**needs, max_restarts=0, max_concurrency=at_once)(Actor)
        common = (extensions(), str(Path.cwd()), worker, *(ray.put(one) for one in arguments))
        self.make = lambda: actor.remote(*common)
        self.waiting: deque[Hashable] = deque()
        self.suspects: deque[Hashable] = deque()  # tasks that were at hand when a worker died
        self.tries: dict[Hashable, int] = {}
        self.running: dict[Any, tuple[Any, Hashable]] = {}  # reference of an answer to actor and task
        self.starting: dict[Any, Any] = {}  # reference of the answer of `ready` to its actor
        self.idle: list[Any] = []  # actors, as often as they could take a task more
        self.alive = self.failed_starts = 0
        self.waited = 0.0

    def answers(self, *phases: Iterable[Hashable]) -> Iterator[tuple[Hashable, Any]]:
        """Gives every actor something to do until no task is left, phase after phase."""
        for tasks in phases:
            self.waiting.extend(tasks)
            while self.alive < min(self.size, len(self.waiting)):
                self._start()
            self._give()
            while self.running or self.waiting or self.suspects:
                yield from self._next_event()

    def _next_event(self) -> Iterator[tuple[Hashable, Any]]:
        ready, _ = self.ray.wait([*self.running, *self.starting], num_returns=1, timeout=EVERY)
        if not ready:
            self.waited += EVERY
            if self.meanwhile is not None:
                self.meanwhile()
            if not self.running and self.waited >= PATIENCE:
                self.waited = 0.0
                logger.warning("Waiting for workers to start, or for room in the Ray cluster.")
        elif ready[0] in self.starting:
            self._started(ready[0])
        else:
            yield from self._answer(ready[0])

    def _start(self) -> None:
        """A new actor, which is given nothing before it is there: there may be no room for it."""
        actor = self.make()
        self.alive += 1
        self.starting[actor.ready.remote()] = actor

    def _started(self, reference: Any) -> None:
        actor = self.starting.pop(reference)
        try:
            self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            self.alive -= 1
            self.failed_starts += 1
            if self.failed_starts >= TRIES:
                why = str(error).strip().splitlines()[-1][-160:]  # of the worker's traceback
                raise ProtoPFaithError(
                    f"Workers of Ray cannot load the run ({why}); let them see the same files, or send them "
                    "along with --ship."
                ) from error
            self._start()
            return
        self.failed_starts = 0
        self.idle += [actor] * self.slots
        self._give()

    def _answer(self, reference: Any) -> Iterator[tuple[Hashable, Any]]:
        actor, task = self.running.pop(reference)
        try:
            yield task, self.ray.get(reference)
        except self.ray.exceptions.RayActorError as error:
            yield from self._lost(actor, task, error)
            return
        except self.ray.exceptions.RayError as error:  # what it was sent cannot be read, for example
            why = reason(getattr(error, "cause", None) or error)
            yield task, SetAside(f"A worker of Ray failed ({why}).")
        self.idle.append(actor)
        self._give()

    def _give(self) -> None:
        """To each actor as many tasks as it has room for; a suspect only to one that does nothing else."""
        free, self.idle = self.idle, []
        for actor in free:
            task = self._next(self._at_hand(actor))
            if task is None:
                self.idle.append(actor)
            else:
                self.running[actor.answer.remote(*self.given(task))] = (actor, task)

    def _next(self, at_hand: list[Hashable]) -> Hashable | None:
        """The task for an actor that has those at hand; None if it has to wait."""
        if any(task in self.tries for task in at_hand):
            return None
        if self.suspects and not at_hand:
            return self.suspects.popleft()
        return self.waiting.popleft() if self.waiting else None

    def _at_hand(self, actor: Any) -> list[Hashable]:
        return [task for owner, task in self.running.values() if owner is actor]

    def _lost(self, actor: Any, task: Hashable, error: Exception) -> Iterator[tuple[Hashable, Any]]:
        """A worker has died: what it was doing is done again by another one, but not for ever.

        Which of several tasks killed it is not known (the answer to the one before may have died with it),
        so each is tried again alone; then it is.
        """
        at_hand = [task]
        for one in [one for one, (owner, _) in self.running.items() if owner is actor]:
            _, other = self.running.pop(one)
            try:
                yield other, self.ray.get(one)  # it was done before
            except self.ray.exceptions.RayError:
                at_hand.append(other)
        for one in at_hand:
            self.tries[one] = self.tries.get(one, 0) + (len(at_hand) == 1)
            if self.tries[one] < TRIES:
                self.suspects.append(one)
            else:
                died = type(error).__name__
                yield one, SetAside(f"It killed its worker {TRIES} times ({died}), so it was set aside.")
        self.idle = [one for one in self.idle if one is not actor]
        self.alive -= 1
        self._start()
        self._give()


def _how_many(ray: Any, needs: Mapping[str, int]) -> int:
    there = ray.cluster_resources()
    names = {"num_cpus": "CPU", "num_gpus": "GPU"}
    found = int(min(there.get(names[kind], 0) // count for kind, count in needs.items()))
    if found < 1:
        raise ProtoPFaithError(
            f"The Ray cluster has no room for a worker ({dict(needs)}); add machines to it."
        )
    return found

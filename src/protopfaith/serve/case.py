"""A case: one image, one question, and an answer that becomes more precise while somebody looks."""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from protopfaith.data import Record
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.assembly import assemble
from protopfaith.explanation.decision import Decision, decide
from protopfaith.explanation.explanation import Explanation
from protopfaith.explanation.familiarity import familiarity, is_unfamiliar
from protopfaith.explanation.findings import Finding, findings_of
from protopfaith.explanation.picture import Picture
from protopfaith.explanation.question import about_finding, question
from protopfaith.explanation.resumable_game import ResumableGame
from protopfaith.explanation.settings import Settings
from protopfaith.serve.bounds import Bounds
from protopfaith.serve.live_blocks import LiveBlocks
from protopfaith.serve.networks import Network
from protopfaith.serve.pace import ENOUGH, LEAST, SMALLEST
from protopfaith.serve.question import USUAL_PRECISION, Question
from protopfaith.serve.regions import FEW, first_players, players_for, spec_of
from protopfaith.serve.whatif import WhatIf, hide
from protopfaith.shapley import Attribution

MARGIN = 1.05  # times as many evaluations as the precision seems to need
ASKED = 6  # passes that deciding takes, about
CLEAR = 0.25  # relative error at which a finer map takes the place of the coarse one
COARSE_EVALUATIONS = 512


@dataclass(frozen=True, eq=False)
class Shown:
    """The map that is shown: one object, so that whoever holds it has values of these very regions, whatever
    is played meanwhile."""

    resumable: ResumableGame
    result: Attribution | None
    is_coarse: bool


class Case:
    """One image and one question.

    Its methods `decide`, `play`, `without` and `explanation` belong to the worker, which plays in one thread
    and answers in another; the others may be called from anywhere.

    Args:
        network: that is asked.
        picture: the image, as this network reads it.
        question: what is asked.
        visitor: who asks.
        bounds: what a visitor may cost.
        known: what is known of the image, where it is a test image.
    """

    is_awaited = False  # it is looked at while it becomes sharper

    def __init__(
        self,
        network: Network,
        picture: Picture,
        question: Question,
        visitor: str,
        *,
        bounds: Bounds,
        known: Record | None = None,
    ):
        self.id = secrets.token_urlsafe(16)
        self.mark = f"c{secrets.token_hex(3)}-"  # begins the ids of its pictures
        self.network, self.picture, self.question = network, picture, question
        self.visitor, self.known, self.bounds = visitor, known, bounds
        self.live = LiveBlocks()
        self.stage = "waiting"  # then "playing", "stopping", "stopped", "done" or "failed"
        self.message = ""
        self.precision = USUAL_PRECISION
        self.seen = time.monotonic()
        self.before = 0  # visitors whose turn comes first
        self.images: dict[str, bytes] = {}  # what its pages show
        self.decision: Decision | None = None
        self.findings: tuple[Finding, ...] = ()  # what is said of each, where there are several
        self.is_unfamiliar = False  # whether the image looks like nothing the network knows
        self.hidden: tuple[int, ...] = ()
        self.saved: dict[str, bytes] = {}  # files by name, as they were last made
        self.on_answer: Callable[[Case], None] = lambda case: None  # there is more to show
        self.on_state: Callable[[Case], None] = lambda case: None  # it stopped, waits, goes on
        self.is_alone: Callable[[], bool] = lambda: True  # whether no other visitor waits for a turn
        self.shown: Shown | None = None
        self._coarse: ResumableGame | None = None
        self._fine: ResumableGame | None = None
        self._seconds = 0.0
        self._in_slice = False
        self._lock = threading.Lock()
        self.writing = threading.Lock()  # of its progress

    @property
    def settings(self) -> Settings:
        """How its games are played."""
        explainer = self.network.explainer
        baseline = self.network.baseline(self.question.baseline)
        settings = Settings(baseline=baseline, autocast="auto")
        settings = settings.on(explainer.device, self.picture.input.shape[-2:])
        return replace(settings, players=spec_of(self.question, self.picture.input))

    @property
    def resumable(self) -> ResumableGame | None:
        """The game whose map is shown."""
        shown = self.shown
        return None if shown is None else shown.resumable

    @property
    def result(self) -> Attribution | None:
        """The map that is shown."""
        shown = self.shown
        return None if shown is None else shown.result

    @property
    def is_coarse(self) -> bool:
        shown = self.shown
        return shown is not None and shown.is_coarse

    @property
    def wants_to_play(self) -> bool:
        """Whether somebody looks at it and it is not finished."""
        return self.stage == "playing" and self.live.readers > 0

    @property
    def evaluations(self) -> int:
        """Of the network, for both maps."""
        return sum(one.evaluations for one in (self._coarse, self._fine) if one is not None)

    def stop(self) -> None:
        """Stops the game; a slice that is being played ends first, so that its pages show what it found."""
        with self._lock:
            if self.stage == "playing":
                self.stage = "stopping" if self._in_slice else "stopped"
        self.on_state(self)

    def go_on(self, precision: float) -> None:
        """Plays until that precision is reached."""
        self.precision = precision
        with self._lock:
            if self.stage in ("stopping", "stopped", "done", "playing"):
                self.stage = "done" if self._is_precise() else "playing"
        self.on_state(self)

    def told(self, before: int) -> None:
        """How many visitors come first."""
        if before != self.before:
            self.before = before
            self.on_state(self)

    def fail(self, message: str) -> None:
        with self._lock:
            self.message, self.stage, self._in_slice = message, "failed", False
        with suppress(Exception):  # what cannot be done may be to draw the answer
            self.on_answer(self)
        self.on_state(self)

    def decide(self) -> None:
        """Asks the network, and prepares the game."""
        explainer, start = self.network.explainer, time.perf_counter()
        settings = self.settings
        self.decision = decide(
            explainer.model,
            self.picture,
            self.question.target,
            self.question.versus,
            settings=settings,
            temperature=self.network.calibrator,
        )
        self.findings = findings_of(explainer.model, self.decision, explainer.reference, {})
        near = familiarity(explainer.model, self.decision, explainer.reference)
        self.is_unfamiliar = bool(is_unfamiliar(*near))
        players = players_for(self.question, self.picture.input, self.bounds.regions)
        coarse = first_players(players, self.picture.input)
        self._fine = ResumableGame(explainer.fused, self.decision, settings, players)
        if coarse is not None:
            self._coarse = ResumableGame(explainer.fused, self.decision, settings, coarse)
        self.shown = Shown(self._coarse or self._fine, None, self._coarse is not None)
        spent = time.perf_counter() - start
        self._seconds += spent
        if not self.network.pace.is_known:
            self.network.pace.saw(ASKED, spent, spent)
        with self._lock:
            self.stage = "playing"
        self.on_answer(self)
        self.on_state(self)

    def play(self) -> None:
        """One slice of the game: of the coarse one until it is clear, then of the one that was asked for."""
        with self._lock:
            if self.stage != "playing":  # it was stopped in time
                return
            self._in_slice = True
        before = self.shown
        self._play_slice()
        if self.shown is not before:  # else a finer map is not clear enough yet
            self.on_answer(self)  # before it is said that nothing follows: pages no longer listen then
        with self._lock:
            self._in_slice = False
            if self.stage == "stopping":
                self.stage = "stopped"
            elif self.stage == "playing" and self._is_precise():
                self.stage = "done"
        self.on_state(self)

    def _play_slice(self) -> None:
        start = time.perf_counter()
        coarse = self._coarse is not None and not self._is_clear(self._coarse)
        game = self._coarse if coarse else self._fine
        assert game is not None
        made, evaluating = game.evaluations, game.seconds
        if coarse:
            pace, alone = self.network.pace, self.is_alone()
            step = min(pace.step(made, alone=alone), COARSE_EVALUATIONS - made) if made else pace.first()
            self.shown = Shown(game, game.play(step), True)
        else:
            self._play_fine(game)
        spent = time.perf_counter() - start
        self._seconds += spent
        on_cpu = self.picture.input.device.type == "cpu"  # elsewhere evaluations go on behind our back
        self.network.pace.saw(
            game.evaluations - made, game.seconds - evaluating if on_cpu else spent, in_all=spent
        )

    def _is_clear(self, coarse: ResumableGame) -> bool:
        """Whether the finer game is to begin: also where its map, at so many evaluations that it is shown, is
        a slice away."""
        result = self.result
        if result is None:
            return False
        near = self.network.pace.step(0, alone=self.is_alone()) >= ENOUGH
        return near or result.precision <= CLEAR or coarse.evaluations >= COARSE_EVALUATIONS

    def _play_fine(self, fine: ResumableGame) -> None:
        """Without a precision to stop at, which would be looked at, at the cost of a fit, time and again."""
        left = self.bounds.evaluations - fine.evaluations
        step = 2 ** len(fine.players) if len(fine.players) <= FEW else self._needed(fine)
        least = SMALLEST if fine.evaluations else LEAST
        found = fine.play(max(least, min(step, left)))
        if self._coarse is None or found.precision <= CLEAR or found.evaluations >= ENOUGH:
            if self._coarse is not None:
                self._coarse, self.hidden = None, ()  # other regions from now on
            self.shown = Shown(fine, found, False)

    def _needed(self, fine: ResumableGame) -> int:
        """Evaluations of the next slice, where the end is near those up to the precision that was asked for:
        errors fall with their square root."""
        if not fine.evaluations and self._coarse is None:
            return self.network.pace.first()
        step, result = self.network.pace.step(fine.evaluations, alone=self.is_alone()), fine.result
        if result is None:
            return step
        excess = (result.precision / self.precision) ** 2
        return min(step, math.ceil(fine.evaluations * (MARGIN * excess - 1)))

    def without(self, shown: Shown, hidden: tuple[int, ...]) -> WhatIf:
        """The network's answer without some regions of a map."""
        assert self.decision is not None
        if shown.resumable is self.resumable:
            self.hidden = hidden
        return hide(self.network.explainer.model, self.decision, shown.resumable, shown.result, hidden)

    def explanation(self, *, sources: bool = False) -> Explanation:
        """What is known now, as `explain` gives it."""
        shown = self.shown
        assert self.decision is not None
        assert shown is not None
        assert shown.result is not None
        explainer, settings = self.network.explainer, self.settings
        before = explainer.sources.evaluations
        sides = explainer.sources.explain(self.decision.named, settings) if sources else {}
        found = assemble(
            explainer.model,
            self.decision,
            shown.result,
            replace(
                settings,
                precision=self.precision if self._is_precise() else None,
                budget=shown.result.evaluations,
                sources=sources,
            ),
            weights_hash=explainer.weights_hash,
            reference=explainer.reference,
            sides=sides,
            second=None,
            coarse=shown.is_coarse,
            seconds=self._seconds,
            source_evaluations=explainer.sources.evaluations - before,
        )
        return replace(found, true_class=self.label, reached=True)

    @property
    def title(self) -> str:
        """What stands above its report; empty until the network was asked."""
        decision, strange = self.decision, self.is_unfamiliar
        if decision is None:
            return ""
        if self.findings:
            return about_finding(self.findings[decision.target], unfamiliar=strange)
        names, p = self.network.class_names, decision.probabilities
        return question(names, p, decision.target, decision.versus, unfamiliar=strange)

    @property
    def label(self) -> int | None:
        """The true class, where it is known and images have one."""
        return None if self.known is None or self.known.label < 0 else self.known.label

    def has_sources(self) -> bool:
        """Whether the source images of the prototypes that are shown are there."""
        assert self.decision is not None
        try:
            self.network.explainer.sources.check(self.decision.named)
        except ProtoPFaithError:
            return False
        return True

    def _is_precise(self) -> bool:
        shown = self.shown
        if shown is None or shown.is_coarse or shown.result is None:
            return False
        enough = shown.resumable.evaluations >= self.bounds.evaluations
        return enough or shown.result.precision <= self.precision

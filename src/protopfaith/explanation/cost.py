"""What explanations will cost: forward passes expected, and the time that a timed batch promises."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from protopfaith.explanation.settings import COARSE, COARSE_BUDGET, Settings, coarse_players, make_players
from protopfaith.explanation.sources import Sources
from protopfaith.network import PrototypeNetwork
from protopfaith.progress import Bar, told_time
from protopfaith.shapley.estimation import MOST_EVALUATIONS
from protopfaith.shapley.estimators.exact import MOST_PLAYERS

BATCH = 8  # images of the timed batch
TRIAL = 0.5  # seconds for timing batches
LONG = 20.0  # seconds from which on people want to know beforehand
UNKNOWN = 4_096  # evaluations, as a first guess where only a precision says when to stop


@dataclass(frozen=True)
class Cost:
    """Forward passes of one image's games.

    Args:
        coarse: of the first, quick answer.
        image: of the image's own game, twice with a second baseline.
        sources: of one source image.
        games: source images whose maps are not known yet.
    """

    coarse: int
    image: int
    sources: int
    games: float

    @property
    def total(self) -> int:
        """All of them."""
        return round(self.coarse + self.image + self.sources * self.games)


def has_coarse(settings: Settings, image: torch.Tensor) -> bool:
    """Whether a coarse answer comes first: only if it is coarser and quicker than the real one."""
    if settings.budget is not None and settings.budget <= COARSE_BUDGET:
        return False
    coarse = COARSE**2 if isinstance(settings.players, str) else len(coarse_players(image))
    return _regions(settings, image) > coarse


def _regions(settings: Settings, image: torch.Tensor) -> int:
    """How many there are; of superpixels as many as asked for, about."""
    if isinstance(settings.players, str):
        return int(settings.players.rpartition(":")[2])
    return len(make_players(settings.players, image))


def expected_cost(settings: Settings, image: torch.Tensor, *, coarse: bool, games: float) -> Cost:
    """The passes that one image is expected to take.

    Args:
        settings: resolved ones.
        image: of the size of those to explain.
        coarse: whether a quick answer is wanted.
        games: source images whose maps are not known yet.
    """
    regions = _regions(settings, image)
    most = 2**regions if regions <= MOST_PLAYERS and settings.traits.samples else MOST_EVALUATIONS
    budget = min(settings.budget or UNKNOWN, most)
    return Cost(
        coarse=COARSE_BUDGET if coarse and has_coarse(settings, image) else 0,
        image=budget * (1 if settings.second_baseline is None else 2),
        sources=min(settings.source_budget or budget, most),
        games=games if settings.sources else 0,
    )


def source_games(model: PrototypeNetwork, sources: Sources, settings: Settings, images: int) -> float:
    """Source images per image whose maps are not known yet, before it is known which classes come up."""
    if not settings.sources:
        return 0.0
    classes: dict[int, set[str]] = {}
    for prototype, owner in enumerate(model.prototype_classes.tolist()):
        source = model.sources[prototype]
        if source is not None and not sources.known([prototype], settings):
            classes.setdefault(owner, set()).add(source.sha256)
    mean = sum(map(len, classes.values())) / len(model.class_names)
    return mean * min(1.0, len(model.class_names) / max(images, 1))


@torch.no_grad()
def seconds_per_pass(model: PrototypeNetwork, image: torch.Tensor) -> float:
    """The fastest of some timed batches, after one that warms up: other programs can only make it slower."""
    batch = image.expand(BATCH, *image.shape)

    def ask() -> float:
        start = time.perf_counter()
        float(model.distances(batch).sum())  # waits for the device
        return (time.perf_counter() - start) / BATCH

    ask()
    begun, best = time.perf_counter(), ask()
    while time.perf_counter() - begun < TRIAL:
        best = min(best, ask())
    return best


def cost_sentence(model: PrototypeNetwork, image: torch.Tensor, each: Cost, images: int) -> str | None:
    """A sentence about what is ahead; None where that takes a few seconds."""
    one_pass = seconds_per_pass(model, image)
    seconds = one_pass * each.total * images
    if seconds < LONG:
        return None
    many = f"{images} images with" if images > 1 else "One image with"
    text = f"{many} about {each.total:,} evaluations of the network{' each' if images > 1 else ''}"
    text += f": about {told_time(seconds)} on this {'CPU' if image.device.type == 'cpu' else 'GPU'}"
    quick = expected_cost(
        Settings().made_quick().on(image.device, image.shape[-2:]), image, coarse=False, games=0
    )
    if quick.total * 2 < each.total:
        text += f"; --quick takes about {told_time(one_pass * quick.total * images)}"
    return text + "."


class Overall:
    """One count over all phases and images, whose expected end is corrected as more is known.

    Args:
        bar: where it is shown.
        images: how many are to be explained.
        each: what each is expected to cost.
    """

    def __init__(self, bar: Bar, images: int, each: Cost):
        self.bar, self.left, self.each = bar, images, each
        self.name, self.stage = "", ""
        self.finished = 0  # passes of stages that are done
        self.begun = 0  # what that was when the present image began
        self.now = 0  # passes of the present stage
        bar.begin("explaining", total=max(images * each.total, 1))

    def start(self, name: str) -> None:
        """Goes on to the next image."""
        self._next_stage("")
        self.name, self.left, self.begun = name, self.left - 1, self.finished

    def report(self, stage: str, done: int, expected: int) -> None:
        """What an explanation calls as its `progress`."""
        if stage != self.stage:
            self._next_stage(stage)
        self.now = done
        rest = max(self.each.total - (self.finished - self.begun) - expected, 0) + self.left * self.each.total
        total = self.finished + max(expected, done) + rest
        self.bar.update(f"{self.name}: {stage}", done=self.finished + done, total=max(total, 1))

    def _next_stage(self, stage: str) -> None:
        self.finished, self.now, self.stage = self.finished + self.now, 0, stage

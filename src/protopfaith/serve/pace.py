"""How many evaluations a slice of a game has: few and large ones where the network is quick."""

from __future__ import annotations

from collections import deque

SMALLEST = 32  # evaluations of a slice
LEAST, FIRST = 72, 128  # of the first one, whose map is to come soon: an estimate needs some to begin with
SLICE, LONGEST = 0.4, 1.5  # seconds that a slice is to take, and may take
PATIENCE = 1.0  # seconds that evaluations of the first slice may take
ENOUGH = 2_048  # evaluations after which the finer map is shown, however clear it is
GOALS = (ENOUGH, 12_288)  # evaluations after which a map is drawn where all up to there are quick
REMEMBERED = 8  # slices


class Pace:
    """How fast one network plays, as its last slices tell; of these the largest, as each has a fixed cost.

    >>> pace = Pace()
    >>> pace.saw(2_048, 0.21, 0.3)
    >>> pace.first(), pace.step(0), pace.step(2_048), pace.step(2_048, alone=True)
    (128, 2048, 2048, 10240)
    """

    def __init__(self) -> None:
        self._slices: deque[tuple[int, float, float]] = deque(maxlen=REMEMBERED)

    @property
    def is_known(self) -> bool:
        return bool(self._slices)

    def saw(self, evaluations: int, evaluating: float, in_all: float) -> None:
        """A slice.

        Args:
            evaluations: it had so many.
            evaluating: seconds that they took.
            in_all: seconds that the slice took.
        """
        each = max(evaluating, 1e-9) / max(evaluations, 1)
        self._slices.append((evaluations, each, max(0.0, in_all - evaluating)))

    def first(self) -> int:
        """Evaluations of a map's first slice."""
        _, each, _ = self._largest()
        return max(LEAST, min(FIRST, int(PATIENCE / each)))

    def step(self, made: int, *, alone: bool = False) -> int:
        """Evaluations of the next slice: those to the next goal, where that is near; otherwise a power of two
        (a GPU prepares itself for every size of a batch), of which no less time goes into evaluations than
        into what every slice costs.

        Args:
            made: evaluations so far.
            alone: whether nobody else waits for a turn.
        """
        _, each, fixed = self._largest()
        goal = next_goal(made)
        if (goal - made) * each <= (LONGEST if alone else SLICE):
            return goal - made
        wanted = min(max(SLICE, fixed), LONGEST) / each
        return max(SMALLEST, 1 << (int(wanted) or 1).bit_length() - 1)

    def _largest(self) -> tuple[int, float, float]:
        return max(reversed(self._slices), key=lambda one: one[0])


def next_goal(made: int) -> int:
    """Evaluations after which a map is drawn next: after the last of the goals whenever they have doubled.

    >>> next_goal(0), next_goal(2_048), next_goal(12_288), next_goal(30_000)
    (2048, 12288, 24576, 49152)
    """
    for goal in GOALS:
        if made < goal:
            return goal
    goal = GOALS[-1]
    while goal <= made:
        goal *= 2
    return goal

"""The one progress bar, for everything that takes long: training, explaining, judging, preparing data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")
EVERY = 30.0  # seconds between lines where there is no terminal
Report = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much is expected."""


def told_time(seconds: float) -> str:
    """A time for people, not more precise than it is.

    >>> told_time(2100), told_time(47), told_time(7300)
    ('35 min', '50 s', '2 h')
    """
    if seconds < 90:
        return f"{max(round(seconds, -1), 10):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.0f} h"


class Bar:
    """What is done of what is expected, the time it took and the time it will take; nothing unless `shown`.

    The number expected may be corrected on the way, so that the time left is an honest guess. The bar goes to
    standard error; where that is no terminal or notebook, a line is printed now and then instead. A bar
    inside another one is not drawn.

    Args:
        shown: whether there is anything to see at all
        console: where to draw; standard error by default

    >>> with Bar(shown=False) as bar:
    ...     bar.begin("counting", total=2)
    ...     bar.advance()
    """

    _drawn: ClassVar[Bar | None] = None

    def __init__(self, shown: bool = True, console: Console | None = None):
        from rich.console import Console

        self.shown = shown
        self.console = console or Console(stderr=True, emoji=False)
        self._progress = self._make()
        self._task: Any = None
        self._last_line = self._began = time.monotonic()
        self._began_at = 0

    def _make(self) -> Any:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.table import Column

        # In a narrow terminal the note wraps; bar and times stay whole.
        return Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=12, table_column=Column(no_wrap=True)),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TimeElapsedColumn(table_column=Column(no_wrap=True)),
            TimeRemainingColumn(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[note]}", markup=False, table_column=Column(no_wrap=False)),
            console=self.console,
            transient=True,
            speed_estimate_period=60,
            disable=not self.shown or not (self.console.is_terminal or self.console.is_jupyter),
        )

    def __enter__(self) -> Bar:
        if self.shown and Bar._drawn is None:
            Bar._drawn = self
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if Bar._drawn is self:
            self._progress.stop()
            Bar._drawn = None

    def begin(self, what: str, total: int | None = None, done: int = 0) -> None:
        """Starts to count anew; `total` is None where it is not known yet."""
        if self._task is not None:
            self._progress.remove_task(self._task)
        self._task = self._progress.add_task(what, total=total, completed=done, note="")
        self._began, self._began_at = time.monotonic(), done

    def advance(self, steps: int = 1) -> None:
        """So many steps more are done."""
        self._progress.advance(self._task, steps)
        self._line_now_and_then()

    def update(
        self,
        what: str | None = None,
        *,
        done: int | None = None,
        total: int | None = None,
        note: str | None = None,
    ) -> None:
        """Changes what is said of the present count; None leaves it as it is."""
        given = {"description": what, "completed": done, "total": total, "note": note}
        self._progress.update(self._task, **{key: value for key, value in given.items() if value is not None})
        self._line_now_and_then()

    def _line_now_and_then(self) -> None:
        """Where no bar is drawn, one can still see that something happens."""
        now = time.monotonic()
        if Bar._drawn is not self or not self._progress.disable or now - self._last_line < EVERY:
            return
        self._last_line = now
        task = next(task for task in self._progress.tasks if task.id == self._task)
        line = f"{task.description}: {task.completed:,.0f}"
        if task.total:
            line += f" of {task.total:,.0f}"
            done = task.completed - self._began_at
            if done > 0:
                left = (now - self._began) / done * (task.total - task.completed)
                line += f", about {told_time(left)} left"
        self.say(line)

    def say(self, line: str) -> None:
        """A line above the bar that stays; also where there is no terminal."""
        if self.shown:
            self.console.print(line, highlight=False, soft_wrap=True, markup=False)

    def track(self, items: Iterable[T], what: str, total: int) -> Iterator[T]:
        """The items as they come, counted."""
        self.begin(what, total)
        for item in items:
            yield item
            self.advance()

    def report(self, name: str) -> Report | None:
        """A function to be told (stage, done, expected), for work on the thing called `name`; None if not
        shown. A new stage, or a smaller number than before, starts to count anew."""
        if not self.shown:
            return None
        last: tuple[str, int] | None = None

        def report(stage: str, done: int, expected: int) -> None:
            nonlocal last
            if last is None or stage != last[0] or done < last[1]:
                self.begin(f"{name}: {stage}" if name else stage, expected)
            self.update(done=done, total=expected)
            last = (stage, done)

        return report

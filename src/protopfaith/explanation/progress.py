"""A progress bar whose estimate of the time left follows what is still needed."""

from __future__ import annotations

from collections.abc import Callable

from protopfaith.explanation.local import Report


class Bar:
    """A rich progress bar if `shown`: evaluations done of those expected, and the time they will take.

    The number expected is corrected while the precision is approached, so the time left is an honest guess.
    """

    def __init__(self, shown: bool = True):
        self._bar = None
        if shown:
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
            )
            self._bar = Progress(*columns, transient=True, speed_estimate_period=60)

    def __enter__(self) -> Bar:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def report(self, name: str) -> Report | None:
        """What `protopfaith.explanation.explain` takes as `progress`."""
        return None if self._bar is None else self._follow(name)

    def _follow(self, name: str) -> Callable[[str, int, int], None]:
        bar = self._bar
        assert bar is not None
        current: dict[str, int] = {}
        last: tuple[str, int] = ("", 0)

        def report(stage: str, done: int, expected: int) -> None:
            nonlocal last
            if stage != last[0] or done < last[1]:
                for task in current.values():
                    bar.remove_task(task)  # type: ignore[arg-type]
                current.clear()
                current[stage] = bar.add_task(f"{name}: {stage}", total=expected)
            bar.update(current[stage], completed=done, total=expected)  # type: ignore[arg-type]
            last = (stage, done)

        return report

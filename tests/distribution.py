"""How tests are shared out among the workers of pytest-xdist."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from xdist.scheduler import LoadGroupScheduling

HEAVY = frozenset({"cluster", "browser"})
"""Fixtures that start programs of their own; what uses them stays with one worker."""


class FilesAndGroups(LoadGroupScheduling):
    """The tests of a file go to one worker, which makes their fixtures once; those of a group as well."""

    def _split_scope(self, nodeid: str) -> str:
        return super()._split_scope(nodeid).partition("::")[0]


def gather_heavy(items: Iterable[pytest.Item]) -> None:
    """One Ray and one browser at a time are enough for a small machine."""
    for item in items:
        if not HEAVY.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group("heavy"))


def put_slow_first(items: list[pytest.Item]) -> None:
    """First what has a group, then files with slow tests: nobody waits for one of them at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.get_closest_marker("xdist_group") is None, item.path not in slow))

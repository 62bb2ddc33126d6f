"""How tests are shared out among the workers of pytest-xdist (`--dist loadfile`)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

import pytest
from xdist.scheduler import LoadFileScheduling

HEAVY = {
    "cluster": ("test_cluster.py", "test_distributed.py", "test_on_ray.py"),
    "browser": ("test_browser.py", "test_finding_pages.py"),
}
"""Fixtures that start programs of their own, and the files that may use them."""


def is_heavy(path: str | PurePath) -> bool:
    return any(PurePath(path).name in names for names in HEAVY.values())


class FilesTogether(LoadFileScheduling):
    """The tests of a file go to one worker, which makes their fixtures once. So do all heavy files,
    so that there is one Ray and one browser at a time.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        return "heavy" if is_heavy(file) else file


def check_heavy(items: Iterable[pytest.Item]) -> None:
    """Raises if a file starts what its name does not say."""
    for item in items:
        heavy = HEAVY.keys() & set(getattr(item, "fixturenames", ()))
        if heavy and not is_heavy(item.path):
            raise pytest.UsageError(f"{item.nodeid} uses {heavy}; name its file in tests/distribution.py.")


def put_slow_first(items: list[pytest.Item]) -> None:
    """Heavy files, then those with slow tests: nobody waits for one of them at the end."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (not is_heavy(item.path), item.path not in slow))

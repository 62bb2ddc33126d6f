from __future__ import annotations

from types import SimpleNamespace

import pytest

from protopfaith import allocation
from protopfaith.allocation import KEPT, USUAL, Keeper, keeping_freed_memory


@pytest.fixture
def calls(monkeypatch) -> list[tuple[str, tuple[int, ...]]]:
    """What the C library is asked for, by a process that nobody else has set up."""
    made: list[tuple[str, tuple[int, ...]]] = []

    def function(name: str):
        return lambda *values: made.append((name, values)) or 1

    monkeypatch.setattr(allocation, "_function", function)
    monkeypatch.setattr(allocation, "KEEPER", Keeper())
    for name in ("MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX", "GLIBC_TUNABLES"):
        monkeypatch.delenv(name, raising=False)
    return made


def test_freed_memory_is_kept_and_given_back_once(calls) -> None:
    with keeping_freed_memory():
        kept = dict(values for _, values in calls)
        assert kept == KEPT
        before = len(calls)
        with keeping_freed_memory():
            pass
        assert len(calls) == before  # the outer one still wants it
    assert [("mallopt", item) for item in USUAL.items()] + [("malloc_trim", (0,))] == calls[before:]


def test_it_ends_also_after_an_error(calls) -> None:
    with pytest.raises(KeyError), keeping_freed_memory():
        raise KeyError
    assert calls[-1] == ("malloc_trim", (0,))


@pytest.mark.parametrize(
    ("name", "value"), [("GLIBC_TUNABLES", "glibc.malloc.mmap_max=3"), ("MALLOC_MMAP_MAX_", "3")]
)
def test_what_the_environment_says_stays(calls, monkeypatch, name, value) -> None:
    monkeypatch.setenv(name, value)
    with keeping_freed_memory():
        pass
    assert not calls


def test_elsewhere_nothing_happens(calls, monkeypatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(allocation, "sys", SimpleNamespace(platform="win32"))
    with keeping_freed_memory():
        assert allocation._function("mallopt") is None

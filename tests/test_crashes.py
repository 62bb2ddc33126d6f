from __future__ import annotations

import errno

import pytest

from protopfaith.crashes import NAME, unexpected


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as found:
        return found


def test_one_sentence_and_the_traceback_in_a_file(tmp_path) -> None:
    sentence = unexpected(raised(KeyError("a\nb")), tmp_path)
    assert "\n" not in sentence
    assert "KeyError" in sentence
    assert str(tmp_path / NAME) in sentence
    unexpected(raised(ValueError("second")), tmp_path)
    log = (tmp_path / NAME).read_text()
    assert log.count("Traceback") == 2
    assert "test_crashes.py" in log


def test_memory_needs_no_log(tmp_path) -> None:
    assert "not enough memory" in unexpected(raised(MemoryError()), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_no_bug_to_report(tmp_path) -> None:
    sentence = unexpected(raised(OSError(errno.ENOSPC, "No space left on device")), tmp_path)
    assert "free some space" in sentence
    assert "report" not in sentence
    assert not list(tmp_path.iterdir())


def test_where_nothing_can_be_written_it_is_said_all_the_same(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)  # the folder that is tried next
    assert "ValueError" in unexpected(raised(ValueError("x")), tmp_path / "missing")


def test_an_exception_that_cannot_say_what_it_is_is_told_by_its_kind(tmp_path) -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert "(MuteError: MuteError; details" in unexpected(raised(MuteError()), tmp_path)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            "[enforce fail at alloc_cpu.cpp:127] can't allocate memory: tried to allocate 40000000000 bytes",
            "40.0 GB",
        ),
        ("CUDA out of memory. Tried to allocate 20.00 MiB.", "20.00 MiB"),
    ],
)
def test_how_much_memory_was_wanted_is_told_in_words_of_our_own(words, told) -> None:
    sentence = unexpected(raised(RuntimeError(words)))
    assert f"not enough memory for {told} at once" in sentence
    assert "network" in sentence
    assert "enforce" not in sentence

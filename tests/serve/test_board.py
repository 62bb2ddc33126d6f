"""Readers get every block once, as it is now, and are woken up when there is something new."""

from __future__ import annotations

import asyncio
import threading

from protopfaith.serve.board import Board


def test_only_what_changed_is_new() -> None:
    board = Board()
    board.write({"a": "1", "b": "1"})
    version, _ = board.since(0)
    board.write({"a": "1", "b": "2"})
    assert board.since(version)[1] == {"b": "2"}
    again, _ = board.since(0)
    board.write({"a": "1", "b": "2"})
    assert board.since(0)[0] == again


def test_a_slow_reader_gets_the_newest_alone() -> None:
    board = Board()
    for number in range(1_000):
        board.write({"map": str(number)})
    assert board.since(0)[1] == {"map": "999"}


def test_readers_are_woken_from_another_thread_and_counted() -> None:
    board = Board()

    async def read() -> dict[str, str]:
        bell = board.join()
        assert board.readers == 1
        threading.Timer(0.05, board.write, [{"map": "new"}]).start()
        await asyncio.wait_for(bell.wait(), 120)
        board.leave(bell)
        return board.since(0)[1]

    assert asyncio.run(read()) == {"map": "new"}
    assert board.readers == 0
    board.write({"map": "after the loop has ended"})  # nobody is there to be woken

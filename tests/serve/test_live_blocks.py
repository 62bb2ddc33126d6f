"""Readers get every block once, as it is now, and are woken up when there is something new."""

from __future__ import annotations

import asyncio
import threading

from protopfaith.serve.live_blocks import LiveBlocks


def test_only_what_changed_is_new() -> None:
    blocks = LiveBlocks()
    blocks.write({"a": "1", "b": "1"})
    version, _ = blocks.since(0)
    blocks.write({"a": "1", "b": "2"})
    assert blocks.since(version)[1] == {"b": "2"}
    again, _ = blocks.since(0)
    blocks.write({"a": "1", "b": "2"})
    assert blocks.since(0)[0] == again


def test_a_slow_reader_gets_the_newest_alone() -> None:
    blocks = LiveBlocks()
    for number in range(1_000):
        blocks.write({"map": str(number)})
    assert blocks.since(0)[1] == {"map": "999"}


def test_readers_are_woken_from_another_thread_and_counted() -> None:
    blocks = LiveBlocks()

    async def read() -> dict[str, str]:
        bell = blocks.join()
        assert blocks.readers == 1
        threading.Timer(0.05, blocks.write, [{"map": "new"}]).start()
        await asyncio.wait_for(bell.wait(), 120)
        blocks.leave(bell)
        return blocks.since(0)[1]

    assert asyncio.run(read()) == {"map": "new"}
    assert blocks.readers == 0
    blocks.write({"map": "after the loop has ended"})  # nobody is there to be woken

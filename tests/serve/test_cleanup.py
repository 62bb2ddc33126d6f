"""Cleaning up is idle work that ends."""

from __future__ import annotations

import threading

from protopfaith.serve.cleanup import every, give_back


def test_there_is_nothing_left_to_do_afterwards() -> None:
    assert give_back() is False


def test_a_job_is_done_again_and_again_until_the_end() -> None:
    done, times = threading.Semaphore(0), []

    def job() -> None:
        times.append(1)
        done.release()

    with every(0.001, job):
        assert all(done.acquire(timeout=10) for _ in range(3))
    before = len(times)
    assert not threading.Event().wait(0.02)
    assert len(times) == before

"""Ctrl-C and a polite end (SIGTERM): the same answer at every moment of a command."""

from __future__ import annotations

import os
import signal
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """What the process was sent, and whether anybody has said so yet.

    >>> Interruption().code
    130
    """

    def __init__(self) -> None:
        self.received: list[int] = []
        self.is_told = False

    @property
    def code(self) -> int:
        """The exit code, as shells have it: 130 after Ctrl-C, 143 after SIGTERM."""
        return 128 + (self.received[-1] if self.received else signal.SIGINT)

    def watch(self) -> None:
        """Makes both signals a `KeyboardInterrupt` of this process; one that is ignored, as by nohup, stays
        so."""
        owner = os.getpid()

        def stop(number: int, frame: FrameType | None) -> None:
            if os.getpid() != owner and number == signal.SIGTERM:  # a worker, which its parent ends so
                os._exit(128 + number)
            self.received.append(number)
            raise KeyboardInterrupt

        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, stop)


INTERRUPTION = Interruption()

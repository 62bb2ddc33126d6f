"""How much one server gives to its visitors."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bounds:
    """Limits of one server.

    Args:
        upload: bytes of one image file.
        body: bytes of any other request.
        uploads: image files that are received at a time.
        patience: seconds that a request may take to arrive.
        connections: that are open at a time.
        cases: cases kept in memory; the one that was looked at least recently goes first.
        visitor_cases: of these, one visitor's.
        waiting: requests of one visitor that may wait for the network at a time.
        regions: players that a visitor may ask for.
        evaluations: per map, whatever the precision.
        unseen: seconds after which a case that nobody looks at is forgotten.
        cleanup: seconds between two looks for cases to forget and memory to give back.
        stream: seconds after which a stream ends and a living page opens it again.

    >>> Bounds().upload
    67108864
    """

    upload: int = 64 * 2**20
    body: int = 256 * 2**10
    uploads: int = 8
    patience: float = 120.0
    connections: int = 512
    cases: int = 64
    visitor_cases: int = 24
    waiting: int = 8
    regions: int = 1_024
    evaluations: int = 1 << 18
    unseen: float = 8 * 3600.0
    cleanup: float = 60.0
    stream: float = 60.0

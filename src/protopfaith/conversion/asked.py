"""What the caller of a conversion knows better than the file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Asked:
    """None leaves it to the file, or to what its program does by default."""

    similarity: str | None = None
    epsilon: float | None = None
    size: int | None = None

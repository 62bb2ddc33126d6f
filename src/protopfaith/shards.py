"""Shares of some work: the i-th of n, done anywhere, in any order, without knowing of each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from protopfaith.arguments import shown
from protopfaith.errors import ProtoPFaithError

T = TypeVar("T")
MOST_SHARDS = 100_000
WHOLE = (1, 1)


def parse_shard(text: str) -> tuple[int, int]:
    """(i, n) from i/n.

    Args:
        text: as given on a command line

    >>> parse_shard("3/8")
    (3, 8)
    """
    found = re.fullmatch(r"\s*(\d{1,6})\s*/\s*(\d{1,6})\s*", text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]) <= MOST_SHARDS:
        raise ProtoPFaithError(f"A shard is i/n with i from 1 to n, such as 3/8, not {shown(text)}.")
    return int(found[1]), int(found[2])


def check_shard(shard: Sequence[int]) -> tuple[int, int]:
    """(i, n) with 1 <= i <= n.

    Args:
        shard: a pair of numbers

    >>> check_shard((2, 8))
    (2, 8)
    """
    try:
        number, of = (int(one) for one in shard)
    except (TypeError, ValueError):
        number, of = 0, 0
    if not 1 <= number <= of <= MOST_SHARDS:
        raise ProtoPFaithError(f"A shard is i/n with i from 1 to n, such as 3/8, not {shown(shard)}.")
    return number, of


def share(tasks: Sequence[T], shard: Sequence[int]) -> list[T]:
    """Every n-th task from the i-th on: neighbors, which often cost alike, go to different shards.

    Args:
        tasks: all of them, in the same order everywhere
        shard: (i, n)

    >>> share("abcdefg", (2, 3))
    ['b', 'e']
    """
    number, of = check_shard(shard)
    return list(tasks[number - 1 :: of])

"""Splits that are the same on every machine: decided by hashes of names, not by a random generator."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Sequence

from protopfaith.errors import ProtoPFaithError

FOLDS = 5


def deal(
    names: Sequence[str], strata: Sequence[Hashable], groups: Sequence[str], shares: int, seed: int
) -> list[int]:
    """Deals the images into `shares` equal shares and returns each one's share.

    Each stratum is spread evenly, and images of one group (a patient, or copies of one picture) stay
    together; a group counts for the stratum of its first image.

    >>> deal(["a", "b", "c", "d"], [0, 0, 1, 1], ["a", "b", "c", "d"], shares=2, seed=0).count(0)
    2
    """
    members: dict[str, list[int]] = defaultdict(list)
    for index in sorted(range(len(names)), key=lambda i: names[i]):
        members[groups[index]].append(index)
    decks: dict[str, list[str]] = defaultdict(list)
    for group, indices in members.items():
        decks[repr(strata[indices[0]])].append(group)
    share_of = [0] * len(names)
    # The deal goes on from one stratum to the next, so that the shares stay equal when strata are small.
    turn = 0
    for stratum in sorted(decks):
        for group in sorted(decks[stratum], key=lambda g: _shuffled(g, seed)):
            for index in members[group]:
                share_of[index] = turn % shares
            turn += 1
    return share_of


def _shuffled(name: str, seed: int) -> str:
    return hashlib.sha256(f"{seed}\0{name}".encode("utf-8", "surrogateescape")).hexdigest()


def parse_fold(fold: int | str | None) -> int | str | None:
    """A fold number, `"none"` or None, from what a person typed."""
    if fold is None or fold == "none":
        return fold
    if str(fold) in {str(k) for k in range(FOLDS)}:
        return int(fold)
    raise ProtoPFaithError(
        f"There is no fold {fold!r}; give a number from 0 to {FOLDS - 1}, or 'none' to train on everything."
    )


def connected(*keys: Sequence[str]) -> list[str]:
    """One group name for each image, such that images which share any key share the group.

    >>> connected(["p1", "p1", "p2"], ["x", "y", "y"])
    ['p1', 'p1', 'p1']
    """
    parent: dict[tuple[int, str], tuple[int, str]] = {}

    def find(node: tuple[int, str]) -> tuple[int, str]:
        while parent.setdefault(node, node) != node:
            node = parent[node]
        return node

    for values in zip(*keys, strict=True):
        roots = sorted({find(node) for node in enumerate(values)})
        for node in roots[1:]:
            parent[node] = roots[0]
    return [find((0, value))[1] for value in keys[0]]


def with_fold(
    split_of: Sequence[str],
    names: Sequence[str],
    strata: Sequence[Hashable],
    groups: Sequence[str],
    *,
    fold: int | str | None,
    seed: int,
) -> list[str]:
    """The split of each image (train, validation, test) once the fold is chosen; test images stay.

    Fold None keeps a validation set that is already there, else it is fold 0.
    """
    fold = parse_fold(fold)
    if fold is None and "validation" in split_of:
        return list(split_of)
    result = ["test" if split == "test" else "train" for split in split_of]
    if fold == "none":
        return result
    pool = [index for index, split in enumerate(result) if split == "train"]
    shares = deal([names[i] for i in pool], [strata[i] for i in pool], [groups[i] for i in pool], FOLDS, seed)
    for index, share in zip(pool, shares, strict=True):
        if share == (fold or 0):
            result[index] = "validation"
    return result

"""Splits that are the same on every machine: decided by hashes of names, not by a random generator."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any

from protopfaith.arguments import shown
from protopfaith.errors import ProtoPFaithError

FOLDS = 5
# Names, strata, groups, number of shares, seed: the share of each image, as `deal` gives it.
Dealer = Callable[[Sequence[str], Sequence[Any], Sequence[str], int, int], list[int]]


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
    if fold is None or (isinstance(fold, str) and fold == "none"):
        return fold
    if str(fold) in {str(k) for k in range(FOLDS)}:
        return int(fold)
    raise ProtoPFaithError(
        f"There is no fold {shown(fold)}; give a number from 0 to {FOLDS - 1}, or 'none' to train on "
        "everything."
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
    dealer: Dealer = deal,
) -> list[str]:
    """The split of each image (train, validation, test) once the fold is chosen; test images stay.

    Fold None keeps a validation set that is already there, else it is fold 0. `dealer` is `deal`, or what
    deals another kind of strata.
    """
    fold = parse_fold(fold)
    if fold is None and "validation" in split_of:
        return list(split_of)
    result = ["test" if split == "test" else "train" for split in split_of]
    if fold == "none":
        return result
    pool = [index for index, split in enumerate(result) if split == "train"]
    shares = dealer(
        [names[i] for i in pool], [strata[i] for i in pool], [groups[i] for i in pool], FOLDS, seed
    )
    for index, share in zip(pool, shares, strict=True):
        if share == (fold or 0):
            result[index] = "validation"
    return result


def complete_splits(
    given: Sequence[str | None],
    names: Sequence[str],
    strata: Sequence[Hashable],
    groups: Sequence[str],
    shown: Sequence[Collection[Hashable]],
    *,
    fold: int | str | None,
    seed: int,
    dealer: Dealer = deal,
) -> list[str]:
    """The split of each image where the data say it of all, of some sets, or of none. What they say stays;
    without a test set one image in five is held out, and without a validation set it is a fold of the rest.

    Args:
        given: the split that the data say, if any
        names: of the images
        strata: what is spread evenly
        groups: which images belong together
        shown: what there is to learn from an image, see `with_training`
        fold: see `with_fold`
        seed: of the deals
        dealer: `deal`, or what deals another kind of strata

    >>> names = [f"{number}.png" for number in range(10)]
    >>> splits = complete_splits([None] * 10, names, [0] * 10, names, [{0}] * 10, fold=None, seed=0)
    >>> [splits.count(split) for split in ("train", "validation", "test")]
    [6, 2, 2]
    """
    split_of = [split or "train" for split in given]
    if "test" not in split_of:
        pool = [index for index, split in enumerate(split_of) if split == "train"]
        shares = dealer(
            [names[i] for i in pool], [strata[i] for i in pool], [groups[i] for i in pool], 5, seed
        )
        for index, share in zip(pool, shares, strict=True):
            split_of[index] = "test" if share == 0 else "train"
    dealt = with_fold(split_of, names, strata, groups, fold=fold, seed=seed, dealer=dealer)
    return with_training(dealt, given, shown, groups)


def with_training(
    dealt: Sequence[str],
    given: Sequence[str | None],
    shown: Sequence[Collection[Hashable]],
    groups: Sequence[str],
) -> list[str]:
    """The splits, where a class (or finding) whose few groups were all held out gets one of them back for
    training: of validation where it can, else of testing. Splits that were given stay.

    Args:
        dealt: the split of each image
        given: the one that its data says, if any
        shown: what there is to learn from it: its class, or what is known of its findings
        groups: which images belong together

    >>> with_training(["test", "validation", "train"], [None] * 3, [{"cat"}, {"cat"}, {"dog"}], list("abc"))
    ['test', 'train', 'train']
    """
    result = list(dealt)
    trained = {one for ones, split in zip(shown, dealt, strict=True) if split == "train" for one in ones}
    for missing in dict.fromkeys(one for ones in shown for one in ones if one not in trained):
        own = [i for i, ones in enumerate(shown) if missing in ones]
        if any(result[i] == "train" for i in own):
            continue  # it came back with the group of another
        held = [i for split in ("validation", "test") for i in own if result[i] == split != given[i]]
        for index, group in enumerate(groups):
            if held and group == groups[held[0]]:
                result[index] = "train"
    return result


def deal_findings(
    names: Sequence[str],
    findings: Sequence[Sequence[int]],
    groups: Sequence[str],
    shares: int,
    seed: int,
) -> list[int]:
    """Deals images with several findings into `shares` shares and returns each one's share.

    Groups stay together. The rarest finding is dealt first, and each of its groups goes to the share that
    has the fewest images with it so far (Sechidis et al., 2011): each finding is spread evenly, also a rare
    one. Of equal shares the one with fewer images takes it.

    Args:
        names: of the images
        findings: of each image, 1 where it is there
        groups: which images belong together
        shares: how many
        seed: of the order

    >>> deal_findings(list("abcd"), [(1, 0), (0, 1), (1, 0), (0, 1)], list("abcd"), shares=2, seed=0)
    [1, 1, 0, 0]
    """
    members: dict[str, list[int]] = defaultdict(list)
    for index in sorted(range(len(names)), key=lambda i: names[i]):
        members[groups[index]].append(index)
    count = len(findings[0]) if len(findings) else 0
    there = {
        group: [sum(findings[i][place] == 1 for i in indices) for place in range(count)]
        for group, indices in members.items()
    }
    left = sorted(members, key=lambda group: _shuffled(group, seed))
    dealt = [[0] * (count + 1) for _ in range(shares)]  # findings, then images
    share_of = [0] * len(names)
    while left:
        totals = [sum(there[group][place] for group in left) for place in range(count)]
        rare = min((place for place in range(count) if totals[place]), key=totals.__getitem__, default=count)
        now = [group for group in left if rare == count or there[group][rare]]
        for group in sorted(now, key=lambda group: -len(members[group])):  # large groups first, while it can
            share = min(range(shares), key=lambda share: (dealt[share][rare], dealt[share][count], share))
            for index in members[group]:
                share_of[index] = share
            dealt[share][count] += len(members[group])
            for place, number in enumerate(there[group]):
                dealt[share][place] += number
        chosen = set(now)
        left = [group for group in left if group not in chosen]
    return share_of

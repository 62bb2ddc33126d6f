"""Splits are fair, keep groups together and do not depend on order or machine."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protopfaith.data.splits import connected, deal, deal_findings, parse_fold, with_fold
from protopfaith.errors import ProtoPFaithError

images = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), min_size=1, max_size=60)


@given(images, st.integers(0, 5))
def test_groups_stay_together_and_order_does_not_matter(rows: list[tuple[int, int]], seed: int) -> None:
    names = [f"{i:03d}" for i in range(len(rows))]
    strata, groups = [row[0] for row in rows], [str(row[1]) for row in rows]
    shares = deal(names, strata, groups, 5, seed)
    share_of_group = defaultdict(set)
    for group, share in zip(groups, shares, strict=True):
        share_of_group[group].add(share)
    assert all(len(found) == 1 for found in share_of_group.values())
    backward = deal(names[::-1], strata[::-1], groups[::-1], 5, seed)
    assert backward[::-1] == shares


@given(st.lists(st.integers(0, 3), min_size=1, max_size=80), st.integers(0, 5))
def test_every_stratum_is_spread_evenly(strata: list[int], seed: int) -> None:
    names = [f"{i:03d}" for i in range(len(strata))]
    shares = deal(names, strata, names, 5, seed)
    for stratum in set(strata):
        counts = Counter(share for share, own in zip(shares, strata, strict=True) if own == stratum)
        assert max(counts.values()) - min(counts[k] for k in range(5)) <= 1
    totals = Counter(shares)
    assert max(totals.values()) - min(totals[k] for k in range(5)) <= 1


def test_the_seed_decides() -> None:
    names = [f"{i}" for i in range(100)]
    assert deal(names, [0] * 100, names, 5, 0) != deal(names, [0] * 100, names, 5, 1)


def test_the_deal_follows_sha256_and_nothing_else() -> None:
    """So no version of a library and no machine can change a split."""
    names = [f"image{i}" for i in range(8)]
    order = sorted(range(8), key=lambda i: hashlib.sha256(f"3\0image{i}".encode()).hexdigest())
    expected = {index: turn % 3 for turn, index in enumerate(order)}
    assert deal(names, [0] * 8, names, 3, seed=3) == [expected[i] for i in range(8)]


def test_folds_partition_the_training_images() -> None:
    names = [f"{i:02d}" for i in range(50)]
    official = ["test"] * 10 + ["train"] * 40
    validated: list[int] = []
    for fold in range(5):
        split_of = with_fold(official, names, [0] * 50, names, fold=fold, seed=0)
        assert split_of[:10] == ["test"] * 10
        assert split_of.count("validation") == 8
        validated += [i for i, split in enumerate(split_of) if split == "validation"]
    assert sorted(validated) == list(range(10, 50))


def test_fold_none_and_no_fold() -> None:
    names = list("abcde")
    given_splits = ["train", "train", "train", "validation", "test"]
    assert with_fold(given_splits, names, [0] * 5, names, fold=None, seed=0) == given_splits
    everything = with_fold(given_splits, names, [0] * 5, names, fold="none", seed=0)
    assert everything == ["train"] * 4 + ["test"]
    no_validation = ["train"] * 4 + ["test"]
    assert with_fold(no_validation, names, [0] * 5, names, fold=None, seed=0) == with_fold(
        no_validation, names, [0] * 5, names, fold=0, seed=0
    )


@pytest.mark.parametrize("fold", [5, -1, "all", "first"])
def test_unknown_folds(fold: int | str) -> None:
    with pytest.raises(ProtoPFaithError, match="no fold"):
        parse_fold(fold)


def test_images_that_share_anything_are_connected() -> None:
    groups = connected(["a", "a", "b", "c", "d"], ["1", "2", "2", "3", "4"])
    assert groups[0] == groups[1] == groups[2]
    assert len(set(groups)) == 3


def test_findings_are_spread_evenly_and_groups_stay_together() -> None:
    rng = np.random.default_rng(0)
    findings = [tuple((rng.uniform(size=4) < (0.5, 0.3, 0.1, 0.03)).astype(int)) for _ in range(600)]
    groups = [f"g{i // 3}" for i in range(600)]
    names = [f"{i:03}.png" for i in range(600)]
    shares = deal_findings(names, findings, groups, 5, seed=1)
    assert shares == deal_findings(names, findings, groups, 5, seed=1)
    for first in range(0, 600, 3):
        assert len(set(shares[first : first + 3])) == 1
    for place in range(4):
        counts = [sum(f[place] for f, s in zip(findings, shares, strict=True) if s == k) for k in range(5)]
        assert max(counts) - min(counts) <= 4
    sizes = [shares.count(k) for k in range(5)]
    assert max(sizes) - min(sizes) <= 12


def test_unknown_findings_do_not_stop_the_deal() -> None:
    shares = deal_findings(list("abcdef"), [(-1,)] * 6, list("abcdef"), 3, seed=0)
    assert [shares.count(k) for k in range(3)] == [2, 2, 2]

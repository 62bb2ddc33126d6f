from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protopfaith.errors import ProtoPFaithError
from protopfaith.shards import check_shard, parse_shard, share


@given(st.integers(0, 50), st.integers(1, 12))
def test_shards_part_the_tasks(count: int, of: int) -> None:
    tasks = list(range(count))
    shares = [share(tasks, (number, of)) for number in range(1, of + 1)]
    assert sorted(task for one in shares for task in one) == tasks
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("text", ["3/8", " 3 / 8 "])
def test_shards_are_read(text: str) -> None:
    assert parse_shard(text) == (3, 8)


@pytest.mark.parametrize("text", ["", "0/2", "3/2", "1", "a/b", "1/0", "-1/2", "1/999999"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(ProtoPFaithError, match="such as 3/8"):
        parse_shard(text)


@pytest.mark.parametrize("shard", [(0, 2), (3, 2), (1,), None, "ab", (1, 10**9)])
def test_what_is_no_pair_is_refused(shard: object) -> None:
    with pytest.raises(ProtoPFaithError, match="such as 3/8"):
        check_shard(shard)  # type: ignore[arg-type]

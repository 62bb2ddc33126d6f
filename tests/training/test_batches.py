import os

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from protopfaith.training.batches import (
    UNKNOWN_MEMORY,
    ResidentImages,
    StreamedImages,
    free_memory,
    open_images,
    sequential_order,
    shuffled_order,
)

CPU = torch.device("cpu")
COUNTS = {"count": st.integers(1, 60), "batch_size": st.integers(1, 20), "ranks": st.integers(1, 3)}


@given(**COUNTS, seed=st.integers(0, 99))
def test_an_epoch_is_shuffled_equal_batches_shared_by_ranks(count, batch_size, ranks, seed):
    orders = [
        shuffled_order(count, batch_size, torch.Generator().manual_seed(seed), rank, ranks)
        for rank in range(ranks)
    ]
    batches = [torch.cat(shares) for shares in zip(*orders, strict=True)]
    assert {len(batch) for batch in batches} == {min(batch_size, count)}
    seen = torch.cat(batches).tolist()
    assert len(seen) == len(set(seen)) == count - count % min(batch_size, count)
    assert set(seen) <= set(range(count))


@given(**COUNTS)
def test_measuring_sees_every_image_once(count, batch_size, ranks):
    seen = [
        index
        for rank in range(ranks)
        for batch in sequential_order(count, batch_size, rank, ranks)
        for index in batch.tolist()
    ]
    assert sorted(seen) == list(range(count))


@pytest.mark.parametrize("workers", [0, 1])
def test_both_sources_give_the_same_images(data, workers):
    order = [torch.tensor([3, 1]), torch.tensor([0, 5, 2])]
    resident = list(ResidentImages(data.train, CPU).batches(order))
    source = StreamedImages(data.train, CPU, workers)
    assert len(list(source.batches([torch.tensor([4])]))) == 1  # another pass before, with the same processes
    streamed = list(source.batches(order))
    for indices, ours, theirs in zip(order, resident, streamed, strict=True):
        expected = torch.stack([data.train.image(index) for index in indices.tolist()])
        assert torch.equal(ours[0], expected)
        assert torch.equal(theirs[0], expected)
        assert torch.equal(ours[1], theirs[1])
        assert torch.equal(ours[1], data.train.labels[indices])


def test_small_sets_are_resident_by_themselves(data):
    assert isinstance(open_images(data.train, CPU), ResidentImages)
    assert isinstance(open_images(data.train, CPU, "never"), StreamedImages)


def test_free_memory_is_known_or_guessed(monkeypatch):
    cpu = torch.device("cpu")
    assert free_memory(cpu) > 1 << 20
    monkeypatch.delattr(os, "sysconf", raising=False)  # as on Windows
    assert free_memory(cpu) == UNKNOWN_MEMORY

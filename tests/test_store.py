from __future__ import annotations

import numpy as np
import pytest

from protopfaith.store import Store


class Counter:
    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> dict:
        self.calls += 1
        return {"values": np.arange(3.0), "note": ["a", "b"], "count": self.calls}


def test_results_are_computed_once_for_the_same_settings(tmp_path) -> None:
    compute, store = Counter(), Store(tmp_path, {"model": "x"})
    first, again = (store.once("some/thing", {"seed": 0}, compute) for _ in range(2))
    assert compute.calls == 1
    assert again["values"].tolist() == first["values"].tolist() == [0, 1, 2]
    assert again["note"].tolist() == ["a", "b"]


def test_other_settings_compute_anew(tmp_path) -> None:
    compute = Counter()
    for model, seed in (("x", 0), ("x", 1), ("y", 1)):
        Store(tmp_path, {"model": model}).once("thing", {"seed": seed}, compute)
    assert compute.calls == 3


def test_a_broken_file_is_computed_anew(tmp_path) -> None:
    compute, store = Counter(), Store(tmp_path, {})
    store.once("thing", {}, compute)
    path = tmp_path / "thing.npz"
    path.write_bytes(path.read_bytes()[:40])
    store.once("thing", {}, compute)
    assert compute.calls == 2


def test_an_interruption_leaves_nothing_half_done(tmp_path) -> None:
    def interrupted() -> dict:
        raise KeyboardInterrupt

    store = Store(tmp_path, {})
    with pytest.raises(KeyboardInterrupt):
        store.once("thing", {}, interrupted)
    assert list(tmp_path.rglob("*.npz")) == []


def test_what_is_there_is_known(tmp_path) -> None:
    store = Store(tmp_path, {})
    assert not store.has("thing", {"seed": 0})
    store.once("thing", {"seed": 0}, Counter())
    assert store.has("thing", {"seed": 0})
    assert not store.has("thing", {"seed": 1})

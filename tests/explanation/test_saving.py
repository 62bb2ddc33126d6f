from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explanation, load_explanation


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)) and a.dtype == b.dtype
    if is_dataclass(a):
        return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    both = isinstance(a, float) and isinstance(b, float)
    return a == b or (both and math.isnan(a) and math.isnan(b))


def test_what_is_written_can_be_read_again(explanation: Explanation, tmp_path: Path) -> None:
    text, arrays = explanation.save(tmp_path / "case.v1")
    assert (text.name, arrays.name) == ("case.v1.json", "case.v1.npz")
    assert same(load_explanation(text), explanation)


def test_save_and_load_take_the_same_name(explanation: Explanation, tmp_path: Path) -> None:
    for name in ("case", "case.v2", "other.json"):
        explanation.save(tmp_path / name)
        assert same(load_explanation(tmp_path / name), explanation)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{stem}.{kind}" for stem in ("case", "case.v2", "other") for kind in ("json", "npz")
    }


def test_numbers_that_json_lacks_survive(explanation: Explanation, tmp_path: Path) -> None:
    odd = replace(explanation, precision=float("inf"), seconds=float("nan"))
    text, _ = odd.save(tmp_path / "case")
    json.loads(text.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert same(load_explanation(text), odd)


def test_arrays_are_plain_and_named_in_the_json(explanation: Explanation, tmp_path: Path) -> None:
    text, arrays = explanation.save(tmp_path / "case")
    content = json.loads(text.read_text())
    with np.load(arrays, allow_pickle=False) as archive:
        values = archive[content["class_map"]["values"]["array"]]
    assert np.array_equal(values, explanation.class_map.values.numpy())


def test_unreadable_files_are_one_clear_error(explanation: Explanation, tmp_path: Path) -> None:
    text, arrays = explanation.save(tmp_path / "case")
    arrays.write_bytes(b"broken")
    with pytest.raises(ProtoPFaithError, match="is no readable explanation"):
        load_explanation(text)
    text.write_text(json.dumps({"format": 99}))
    explanation.save(tmp_path / "other")
    (tmp_path / "case.npz").write_bytes((tmp_path / "other.npz").read_bytes())
    with pytest.raises(ProtoPFaithError, match="has format 99"):
        load_explanation(text)


@pytest.mark.parametrize("value", [None, "x", [1]])
@pytest.mark.parametrize(
    "keys",
    [
        ("class_map", "gap"),
        ("class_map", "total"),
        ("target",),
        ("class_map", "values", "array"),
        ("seconds",),
    ],
)
def test_an_entry_that_cannot_be_is_told_in_words_of_ours(
    explanation: Explanation, tmp_path: Path, keys: tuple[str, ...], value: object
) -> None:
    path, _ = explanation.save(tmp_path / "why")
    content = json.loads(path.read_text())
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    path.write_text(json.dumps(content))
    with pytest.raises(
        ProtoPFaithError,
        match=rf"why\.json is no readable explanation \((The argument '{keys[-1]}' of|its entries)",
    ):
        load_explanation(path)

"""Explanations as files that anyone can read: JSON for words and numbers, NPZ for arrays."""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from protopfaith import arguments
from protopfaith.annotations import check_arguments
from protopfaith.arguments import instance, not_empty
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.decomposition import Closeness, Decomposition
from protopfaith.explanation.explanation import Explanation, PrototypeEvidence, SecondBaseline
from protopfaith.explanation.findings import Finding
from protopfaith.explanation.function import ExplainedOutput, FunctionExplanation
from protopfaith.explanation.regions import Agreement, RegionValues
from protopfaith.explanation.sources import SourcePart, SourceSide
from protopfaith.files import is_file, read_json, reason
from protopfaith.network import PrototypeSource, Route, Turn
from protopfaith.npz import read_npz
from protopfaith.shapley import Players
from protopfaith.training.thresholds import FindingRule
from protopfaith.writing import atomic

FORMAT = 1
Loaded = TypeVar("Loaded")
KINDS = {
    kind.__name__: kind
    for kind in (
        Agreement,
        Closeness,
        Decomposition,
        ExplainedOutput,
        Explanation,
        Finding,
        FindingRule,
        FunctionExplanation,
        Players,
        PrototypeEvidence,
        PrototypeSource,
        RegionValues,
        Route,
        SecondBaseline,
        SourcePart,
        SourceSide,
        Turn,
    )
}


def save(explanation: Explanation | FunctionExplanation, stem: Path | str) -> tuple[Path, Path]:
    """Writes `stem.json` and `stem.npz`.

    The JSON has the explanation's fields by name; an array stands there as `{"array": name}`, which is
    its name in the NPZ file. Numbers that JSON does not have (NaN, infinity) stand there as texts.

    Args:
        explanation: what to write.
        stem: the path, with or without `.json`.

    Returns:
        Both paths.
    """
    stem = arguments.path(stem, "Where to write")
    if not stem.name:
        raise ProtoPFaithError(f"{str(stem)!r} is no file to write to; give another name.")
    arrays: dict[str, np.ndarray] = {}
    content = {"format": FORMAT, **_encode(explanation, "", arrays, {})}
    stem = stem.with_suffix("") if stem.suffix == ".json" else stem
    text_path, array_path = stem.with_name(f"{stem.name}.json"), stem.with_name(f"{stem.name}.npz")
    with atomic(array_path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    with atomic(text_path) as partial:
        partial.write_text(json.dumps(content, indent=1, allow_nan=False), encoding="utf-8")
    return text_path, array_path


def load(path: Path | str) -> Explanation:
    """Reads an explanation; executes no code.

    Args:
        path: what `save` was given, or its JSON file; the NPZ file lies beside it.

    >>> from tempfile import mkdtemp
    >>> from protopfaith.explanation import Explainer
    >>> found = Explainer("runs/birds").explain("bird.png", players=16, budget=64, sources=False)
    >>> path, _ = found.save(f"{mkdtemp()}/bird")
    >>> bool((load(path).class_map.values == found.class_map.values).all())
    True
    """
    return _load(path, Explanation)


def load_function_explanation(path: Path | str) -> FunctionExplanation:
    """Reads what `FunctionExplanation.save` wrote; executes no code.

    Args:
        path: what `save` was given, or its JSON file; the NPZ file lies beside it.

    >>> from tempfile import TemporaryDirectory
    >>> from protopfaith.explanation import explain_function
    >>> found = explain_function(lambda x: x.mean((1, 2, 3)), torch.ones(3, 32, 32), players=16)
    >>> with TemporaryDirectory() as folder:
    ...     text, arrays = found.save(f"{folder}/why")
    ...     load_function_explanation(text).outputs
    (ExplainedOutput('output 0', value=1, empty=0),)
    """
    return _load(path, FunctionExplanation)


def _load(path: Path | str, kind: type[Loaded]) -> Loaded:
    instance(path, (str, Path), "An explanation", "the path of its JSON file")
    path = _json_path(Path(not_empty(path, "An explanation")))
    try:
        content = read_json(path, "the JSON file of an explanation, with its NPZ file beside it")
        if not isinstance(content, dict):
            raise ValueError("it holds no keys")
        found = read_npz(path.with_suffix(".npz"))
        arrays = {name: torch.from_numpy(array) for name, array in found.items()}
        version = content.pop("format")
        if version != FORMAT:
            raise ProtoPFaithError(
                f"{path} has format {version}, but this version reads {FORMAT}: update protopfaith."
            )
        decoded = _whole(content, arrays)
        if not isinstance(decoded, kind):
            raise ValueError("it describes something else")
        return decoded
    except ProtoPFaithError:
        raise
    except Exception as error:  # whatever a damaged file leads to
        why = reason(error) if isinstance(error, ValueError) else "its entries are not those that it had"
        raise ProtoPFaithError(
            f"{path} is no readable explanation ({why}); give the JSON file of one, with its NPZ "
            "file beside it."
        ) from error


def _json_path(path: Path) -> Path:
    """The JSON file of a stem; a file that is there is meant itself."""
    if path.suffix == ".json" or is_file(path) or not path.name:
        return path
    return path.with_name(f"{path.name}.json")


def _encode(value: Any, name: str, arrays: dict[str, np.ndarray], seen: dict[int, str]) -> Any:
    """`seen` knows the arrays by identity: maps that share their players store them once."""
    if isinstance(value, Tensor):
        if id(value) not in seen:
            seen[id(value)] = name
            arrays[name] = value.cpu().numpy()
        return {"array": seen[id(value)]}
    if is_dataclass(value) and not isinstance(value, type):
        own = value.to_dict() if isinstance(value, PrototypeSource) else _fields(value)
        parts = {key: _encode(one, _join(name, key), arrays, seen) for key, one in own.items()}
        return {"type": type(value).__name__, **parts}
    if isinstance(value, dict):
        return {str(k): _encode(v, _join(name, str(k)), arrays, seen) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(v, _join(name, str(i)), arrays, seen) for i, v in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    return value if isinstance(value, str | int | float | bool | type(None)) else str(value)


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _whole(content: dict[str, Any], arrays: dict[str, Tensor]) -> Any:
    """What is described; raises ValueError where an entry cannot be."""
    try:
        return _decode(content, arrays)
    except ProtoPFaithError as error:
        raise ValueError(reason(error)) from error


def _decode(value: Any, arrays: dict[str, Tensor]) -> Any:
    if isinstance(value, list):
        return tuple(_decode(one, arrays) for one in value)
    if not isinstance(value, dict):
        return value
    if set(value) == {"array"}:
        return arrays[value["array"]]
    if set(value) == {"number"}:
        return float(value["number"])
    parts = {k: _decode(v, arrays) for k, v in value.items() if k != "type"}
    kind = KINDS.get(value.get("type", ""))
    if kind is None:
        return {int(k) if k.isdecimal() else k: v for k, v in parts.items()}
    made = kind(**parts)
    check_arguments(kind, {name: _finite(entry) for name, entry in vars(made).items()})
    return made


def _finite(value: Any) -> Any:
    """The value with zero for numbers that are not finite, which results may have, unlike arguments."""
    if isinstance(value, float):
        return value if math.isfinite(value) else 0.0
    if isinstance(value, tuple):
        return tuple(map(_finite, value))
    return {key: _finite(entry) for key, entry in value.items()} if isinstance(value, dict) else value


def _join(name: str, more: str) -> str:
    return f"{name}.{more}" if name else more

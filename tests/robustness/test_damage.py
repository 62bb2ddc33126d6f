"""Every file that we write, flipped, cut or swapped: reading it gives the same, or one sentence, or heals."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import protopfaith as pf
from protopfaith.data import load_data
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.saving import load as load_explanation
from protopfaith.network import load as load_network
from protopfaith.shapley import Attribution
from protopfaith.store import Store
from protopfaith.training.checkpoint import Checkpoint
from protopfaith.training.reference import Reference


@dataclass(frozen=True)
class Written:
    """A file, and what reading it gives as plain bytes to compare; `heals`: damage must not be seen at all."""

    path: Path
    read: Callable[[], Any]
    heals: bool = False


def tensors(found: dict[str, torch.Tensor]) -> list[tuple[str, bytes]]:
    return [
        (name, t.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        for name, t in sorted(found.items())
    ]


def opens(read: Callable[[], Any]) -> Callable[[], bool]:
    """For files that people may edit, where other values are other values: they open."""

    def opened() -> bool:
        read()
        return True

    return opened


@pytest.fixture(scope="module")
def written(template: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Written]:
    """One file of each kind, with its reader."""
    place = tmp_path_factory.mktemp("written")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROTOPFAITH_CACHE", str(place / "cache"))
        run = pf.Run(shutil.copytree(template / "run", place / "run"))
        explanation = pf.explain(run, template / "good.png", players=12, budget=64, sources=False)
        explanation.save(place / "explanation")
        game = pf.Game(
            lambda x: x.sum((1, 2, 3))[:, None], torch.rand(1, 4, 4), pf.Players.windows((4, 4), 2)
        )
        pf.estimate(game, "exact").save(place / "attribution.npz")
        store = Store(place / "store", {"version": 1})
        record = {"a": np.arange(12.0)}
        store.once("one", {"x": 1}, lambda: record)
        load_data("folder", root=template / "images", size=24)
    weights = pf.Explainer(run).weights_hash
    (hashes,) = (place / "cache" / "hashes").glob("*.json")
    (images,) = (path for path in (place / "cache" / "images").iterdir() if path.name.startswith("folder"))

    def cached() -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PROTOPFAITH_CACHE", str(place / "cache"))
            data = load_data("folder", root=template / "images", size=24)
        return data.fingerprint, data.train.uint8().numpy().tobytes(), data.test.paths

    def stored() -> Any:
        return store.once("one", {"x": 1}, record.copy)["a"].tobytes()

    def pixels() -> Any:
        return cached()[1]

    def explained() -> Any:
        found = load_explanation(place / "explanation.json")
        return (
            found.name,
            found.class_names,
            tensors({"values": found.class_map.values, "pixels": found.pixels}),
        )

    def reference() -> Any:
        found = Reference.load(run.folder, weights)
        return None if found is None else tensors({"m": found.mean_similarities, "u": found.usual_distances})

    def attribution() -> Any:
        found = Attribution.load(place / "attribution.npz")
        return tensors({"values": found.values, "errors": found.standard_errors})

    return {
        "model": Written(run.model_path, lambda: tensors(load_network(run.model_path)[0].state_dict())),
        "checkpoint": Written(run.checkpoint_path, lambda: tensors(Checkpoint.load(run.checkpoint_path).tensors)),
        "recipe": Written(run.recipe_path, opens(run.recipe)),
        "environment": Written(run.folder / "environment.json", opens(run.environment)),
        "metrics": Written(run.metrics_path, opens(run.metrics)),
        "reference": Written(run.folder / "reference.json", opens(reference)),
        "explanation": Written(place / "explanation.json", opens(explained)),
        "arrays": Written(place / "explanation.npz", explained),
        "attribution": Written(place / "attribution.npz", attribution),
        "store": Written(place / "store" / "one.npz", stored, True),
        "hashes": Written(hashes, opens(cached)),
        "index": Written(images / "index.json", pixels, True),
        "pixels": Written(images / "pixels.npy", pixels, True),
    }  # fmt: skip


def damage(content: bytes, data: st.DataObject) -> bytes:
    """Something that happens to files."""
    kind = data.draw(st.sampled_from(["flip", "cut", "swap", "zeros", "grow", "empty"]))
    if not content or kind == "empty":
        return b""
    position = data.draw(st.integers(0, len(content) - 1))
    if kind == "cut":
        return content[:position]
    if kind == "grow":
        return content[:position] + data.draw(st.binary(min_size=1, max_size=9)) + content[position:]
    changed = bytearray(content)
    if kind == "flip":
        changed[position] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "zeros":
        changed[position : position + 64] = bytes(len(changed[position : position + 64]))
    else:
        other = data.draw(st.integers(0, len(content) - 1))
        changed[position], changed[other] = changed[other], changed[position]
    return bytes(changed)


KINDS = [
    "model", "checkpoint", "recipe", "environment", "metrics", "reference", "explanation", "arrays",
    "attribution", "store", "hashes", "index", "pixels",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_reading_gives_the_same_or_one_sentence(
    kind: str, written: dict[str, Written], data: st.DataObject
) -> None:
    file = written[kind]
    before, content = file.read(), file.path.read_bytes()
    file.path.write_bytes(damage(content, data))
    try:
        found, sentence = file.read(), ""
    except ProtoPFaithError as error:
        found, sentence = before, str(error)
    finally:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        file.path.write_bytes(content)
    assert found == before
    assert not (file.heals and sentence), sentence
    assert len(sentence) < 1000

"""A pickle that somebody planted where weights are looked for never runs."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torchvision
from safetensors import safe_open
from safetensors.torch import save_file

from tests.robustness.harness import Done, run_program


class Evil:
    """Unpickling it leaves a file."""

    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch '{self.mark}'",)


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[Path]:
    """What would be there if anything had run."""
    path = tmp_path / "it-ran"
    yield path
    assert not path.exists()


def plant(file: Path, mark: Path, kind: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as opened:
        if kind == "torch":
            torch.save({"conv1.weight": Evil(mark)}, opened)
        else:
            pickle.dump(Evil(mark), opened)
    return file


@pytest.fixture(params=["torch", "pickle"])
def hub(request: pytest.FixtureRequest, tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of torch's hub whose ResNet18 is not what its name says."""
    name = Path(torchvision.models.ResNet18_Weights.IMAGENET1K_V1.url).name
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    return plant(tmp_path / "torch" / "hub" / "checkpoints" / name, mark, request.param)


def trained(tmp_path: Path, template: Path, weights: str | Path) -> Done:
    options = ["--root", str(template / "images"), "--out", "new", "model.encoder=resnet18"]
    shutil.copy(template / "tiny.yaml", tmp_path)
    return run_program(tmp_path, ["train", "tiny.yaml", *options, f"model.weights={weights}"])


def test_the_program_would_notice(tmp_path: Path, mark: Path) -> None:
    """The trap works: whoever unpickles the file runs it."""
    with plant(tmp_path / "trap", mark, "pickle").open("rb") as file:
        pickle.load(file)
    assert mark.exists()
    mark.unlink()


def test_training_reads_tensors_alone_from_the_hubs_cache(tmp_path: Path, template: Path, hub: Path) -> None:
    done = trained(tmp_path, template, "imagenet")
    assert done.code == 1
    assert not done.trace
    assert "hub" in done.err
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("kind", ["torch", "pickle"])
def test_training_reads_tensors_alone_from_a_path(
    tmp_path: Path, template: Path, mark: Path, kind: str
) -> None:
    done = trained(tmp_path, template, plant(tmp_path / "resnet18.pth", mark, kind))
    assert done.code == 1
    assert not done.trace
    assert "resnet18.pth" in done.err


@pytest.mark.parametrize("command", ["predict", "explain"])
def test_opening_a_run_looks_for_no_weights(tmp_path: Path, template: Path, hub: Path, command: str) -> None:
    """A stranger's header asks for published weights, or for those of a path."""
    run = shutil.copytree(template / "run", tmp_path / "run")
    model = run / "model.safetensors"
    with safe_open(model, "pt") as file:
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        metadata = dict(file.metadata())
    header = json.loads(metadata["protopfaith"])
    for weights in ("imagenet", str(hub)):
        header["architecture"] |= {"encoder": "resnet18", "weights": weights}
        save_file(tensors, model, {**metadata, "protopfaith": json.dumps(header)})
        done = run_program(tmp_path, [command, "run", str(template / "good.png")])
        assert done.code == 1
        assert not done.trace

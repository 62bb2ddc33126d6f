"""What every case copies from: a small trained run, its images, and another run's model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from tests.cli.conftest import TINY


def make_template(folder: Path) -> Path:
    """A folder with images, a recipe and a run."""
    from protopfaith.training import load_recipe, train

    random = np.random.default_rng(0)
    for label, name in enumerate(("blue", "green", "red")):
        (folder / "images" / name).mkdir(parents=True)
        for number in range(12):
            pixels = random.integers(0, 90, (30, 40, 3), dtype=np.uint8)
            pixels[8:20, 10:25, 2 - label] = 240
            Image.fromarray(pixels).save(folder / "images" / name / f"{number}.png")
    Image.fromarray(pixels).save(folder / "good.png")
    (folder / "tiny.yaml").write_text(yaml.safe_dump(TINY))
    root = f"data.root={folder / 'images'}"
    train(load_recipe(folder / "tiny.yaml", [root]), folder / "run", progress=False)
    other = train(load_recipe(folder / "tiny.yaml", [root, "seed=5"]), folder / "other", progress=False)
    (other.folder / "model.safetensors").rename(folder / "other.safetensors")
    make_findings(folder)
    return folder


def make_findings(folder: Path) -> None:
    """A run on the same images with two findings, one of them in every green image."""
    from protopfaith.training import load_recipe, train

    names = [f"{name}/{number}.png" for name in ("blue", "green", "red") for number in range(12)]
    lines = [f"{path},{int(path.startswith('green'))},{i % 2}" for i, path in enumerate(names)]
    (folder / "findings.csv").write_text("\n".join(["file,green,mass", *lines]))
    model = {**TINY["model"], "family": "xprotonet"}
    data = {"name": "findings", "size": [24, 24], "options": {"table": str(folder / "findings.csv")}}
    (folder / "findings.yaml").write_text(yaml.safe_dump({**TINY, "data": data, "model": model}))
    train(
        load_recipe(folder / "findings.yaml", [f"data.root={folder / 'images'}"]),
        folder / "findings",
        progress=False,
    )


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("template")
    before = os.environ.get("PROTOPFAITH_CACHE")
    os.environ["PROTOPFAITH_CACHE"] = str(folder / "cache")
    yield make_template(folder)
    os.environ.pop("PROTOPFAITH_CACHE")
    if before is not None:
        os.environ["PROTOPFAITH_CACHE"] = before

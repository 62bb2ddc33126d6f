"""Images in every kind of place, and a data set of them."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from protopfaith.explanation import Bulk, explain_bulk
from protopfaith.explanation.picture import to_pil
from protopfaith.training import Run

pytest.importorskip("pyarrow")
QUICK = {"players": 16, "budget": 128}


@pytest.fixture(scope="session")
def pictures(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with five images, one of which is broken."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(4):
        path = folder / f"ward{number % 2}" / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        to_pil(run.data().test.image(number)).save(path)
    (folder / "ward0" / "broken.png").write_bytes(b"no image")
    return folder


@pytest.fixture(scope="session")
def tar(pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as WebDataset has it."""
    path = tmp_path_factory.mktemp("tar") / "shard-0.tar"
    with tarfile.open(path, "w") as archive:
        for file in sorted(pictures.rglob("*.png")):
            archive.add(file, file.name)
            label = tarfile.TarInfo(f"{file.stem}.cls")
            label.size = 1
            archive.addfile(label, io.BytesIO(b"3"))
    return path


@pytest.fixture(scope="session")
def bulk(run: Run, pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Bulk:
    return explain_bulk(run, [pictures], tmp_path_factory.mktemp("bulk") / "out", **QUICK)


def same(first: Bulk, second: Bulk) -> None:
    """All but the time is equal, bit by bit."""
    tables = [one.table().drop_columns(["seconds"]) for one in (first, second)]
    assert tables[0].num_rows == first.manifest.images
    assert tables[0].equals(tables[1])


def rows(bulk: Bulk) -> dict[str, dict[str, Any]]:
    return {row["image"]: row for row in bulk.table().to_pylist()}

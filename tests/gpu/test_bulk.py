"""Many images on a GPU: however the work is divided, the values are those of one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from protopfaith.explanation import Bulk, explain_bulk
from protopfaith.explanation.picture import to_pil
from protopfaith.training import Run

pytest.importorskip("pyarrow")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
QUICK = {"players": 16, "budget": 256, "device": "cuda"}


@pytest.fixture(scope="module")
def pictures(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    for number in range(5):
        to_pil(run.data().test.image(number)).save(folder / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def serial(run: Run, pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Bulk:
    return explain_bulk(run, [pictures], tmp_path_factory.mktemp("serial") / "out", at_once=1, **QUICK)


def test_shards_have_the_values_of_one_process(
    run: Run, pictures: Path, serial: Bulk, tmp_path: Path
) -> None:
    for number in (2, 1):
        divided = explain_bulk(run, [pictures], tmp_path / "out", shard=(number, 2), at_once=1, **QUICK)
    _same_values(serial, divided)


def test_two_images_at_a_time_have_the_values_of_one(
    run: Run, pictures: Path, serial: Bulk, tmp_path: Path
) -> None:
    _same_values(serial, explain_bulk(run, [pictures], tmp_path / "out", at_once=2, **QUICK))


def test_ray_has_the_values_of_one_process(run: Run, pictures: Path, serial: Bulk, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    _same_values(serial, explain_bulk(run, [pictures], tmp_path / "out", ray="local", **QUICK))


def _same_values(first: Bulk, second: Bulk) -> None:
    """To 1e-5 of the range of each map."""
    rows, others = _rows(first), _rows(second)
    assert rows.keys() == others.keys()
    for image, row in rows.items():
        assert row["error"] is None
        values = np.array(row["values"])
        np.testing.assert_allclose(
            np.array(others[image]["values"]), values, rtol=0, atol=1e-5 * np.ptp(values)
        )


def _rows(bulk: Bulk) -> dict[str, dict[str, Any]]:
    return {row["image"]: row for row in bulk.table().to_pylist()}

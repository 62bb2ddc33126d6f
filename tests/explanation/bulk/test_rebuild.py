from __future__ import annotations

import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Bulk, Explainer, explain_bulk
from protopfaith.explanation.bulk.rebuild import rebuild
from protopfaith.training import Run
from tests.explanation.bulk.conftest import QUICK


@pytest.mark.parametrize(
    "asked", [{}, {"versus": 1, "target": 0}, {"players": "superpixels:9"}, {"estimator": "owen"}]
)
def test_it_is_the_explanation_that_the_row_is_of(
    run: Run, pictures: Path, tmp_path: Path, asked: dict
) -> None:
    image = pictures / "ward1" / "1.png"
    asked = {**QUICK, **asked}
    bulk = explain_bulk(run, [image], tmp_path / "out", **asked)
    again, alone = rebuild(bulk, "1.png"), Explainer(run).explain(image, sources=False, **asked)
    maps = [(again.class_map, alone.class_map)]
    maps += [(one.test, other.test) for one, other in zip(again.evidence, alone.evidence, strict=True)]
    maps += [(again.other_maps[name], one) for name, one in alone.other_maps.items()]
    for one, other in maps:
        torch.testing.assert_close(one.values, other.values, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(
            one.standard_errors, other.standard_errors, rtol=1e-5, atol=1e-6, equal_nan=True
        )
        assert torch.equal(one.undecided, other.undecided)
        assert torch.equal(one.players.labels, other.players.labels)
    assert torch.equal(again.probabilities, alone.probabilities)
    assert again.title == alone.title
    assert again.report(tmp_path / "report.html").stat().st_size > 10_000


def test_what_moved_can_be_given(bulk: Bulk, run: Run, pictures: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(run.folder, tmp_path / "moved")
    out = shutil.copytree(bulk.folder, tmp_path / "out")
    (out / "_where.parquet").unlink()
    with pytest.raises(ProtoPFaithError, match="give --run and --image"):
        rebuild(Bulk(out, bulk.manifest), "3.png")
    found = rebuild(Bulk(out, bulk.manifest), "3.png", run=moved, file=pictures / "ward1" / "3.png")
    assert found.name == "3.png"


def test_another_image_than_the_explained_one_is_refused(bulk: Bulk, pictures: Path) -> None:
    """The maps of one image would be shown on another."""
    with pytest.raises(ProtoPFaithError, match=r"The file of 3\.png is another one than that which"):
        rebuild(bulk, "3.png", file=pictures / "ward0" / "0.png")


def test_a_picture_that_the_network_hardly_tells_apart_is_another_one_all_the_same(
    run: Run, pictures: Path, tmp_path: Path
) -> None:
    image = tmp_path / "x.png"
    shutil.copy(pictures / "ward1" / "3.png", image)
    bulk = explain_bulk(run, [image], tmp_path / "out", **QUICK)
    with Image.open(image) as opened:
        changed = opened.copy()
    changed.putpixel((0, 0), (1, 2, 3))
    changed.save(image)
    with pytest.raises(ProtoPFaithError, match=r"The file of x\.png .* its content has changed"):
        rebuild(bulk, "x.png")


@pytest.mark.parametrize("options", [None, [1], "x", 3])
def test_damaged_options_are_one_sentence(bulk: Bulk, options: object) -> None:
    settings = {**bulk.manifest.settings, "options": options}
    broken = Bulk(bulk.folder, replace(bulk.manifest, settings=settings))
    with pytest.raises(ProtoPFaithError, match=r"The settings of this image in .* are damaged"):
        rebuild(broken, "3.png")


def test_a_bad_image_has_no_report(bulk: Bulk) -> None:
    with pytest.raises(ProtoPFaithError, match="could not be explained"):
        rebuild(bulk, "broken.png")


def test_files_of_one_name_in_a_tar_are_told_apart(run: Run, pictures: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "same.tar", "w") as archive:
        for file in (pictures / "ward0" / "0.png", pictures / "ward1" / "1.png"):
            archive.add(file, "x.png")
    bulk = explain_bulk(run, [tmp_path / "same.tar"], tmp_path / "out", **QUICK)
    first, second = (rebuild(bulk, name) for name in bulk.frame()["image"])
    assert not torch.equal(first.pixels, second.pixels)

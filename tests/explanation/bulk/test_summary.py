from __future__ import annotations

import base64
import io
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from PIL import Image

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Bulk, Explainer, explain_bulk, summarize
from protopfaith.explanation.bulk.dataset import PART, Manifest, begin
from protopfaith.explanation.bulk.inputs import Item
from protopfaith.explanation.bulk.locations import keep_locations
from protopfaith.explanation.bulk.schema import failed_row
from protopfaith.show.summary import write_summary
from protopfaith.training import Run
from tests.explanation.bulk.conftest import QUICK

CLASSES = ("cat <b>", "dog")


def made(folder: Path, rows: list[dict[str, Any]]) -> Bulk:
    """A data set of 2 x 2 windows with these rows."""
    common = {"items": "x", "key": "x", "settings": {}, "weights": "w", "threads": 1}
    manifest = Manifest(images=len(rows), classes=CLASSES, size=(4, 4), window=(2, 2), **common)
    bulk = begin(folder, manifest)
    for row in rows:
        bulk.keep(row)
    for number in range(manifest.parts):
        bulk.finish(number)
    return bulk


def row(position: int, label: str, values: list[float], **more: Any) -> dict[str, Any]:
    usual = {"class": label, "prediction": label, "probability": 0.5, "decided": [True] * 4, "values": values}
    return {**failed_row(f"{position}.png", position, ""), "error": None, **usual, **more}


@pytest.fixture
def bulk_of_two(tmp_path: Path) -> Bulk:
    """Cats on the left, dogs on the right, more than a part of them; some stand out."""
    rows = [row(i, "cat <b>", [1.0, 0.5, 0.6, 0.5]) for i in range(PART)]
    rows += [row(PART + i, "dog", [0.0, 1.0, -0.5, 0.9]) for i in range(20)]
    rows[3] |= {"inside": 0.1, "box_share": 0.4}
    rows[4] |= {"inside": 0.9, "box_share": 0.4}
    rows[8] |= {"inside": 0.3, "box_share": 0.07}  # a small object in larger regions: four times chance
    rows[5] |= {"values": [0.1, 5.0, 0.1, 0.0]}
    rows[6] |= {"values": [0.1, 5.0, 0.1, 0.0], "decided": [True, False, True, True]}
    rows[7] = failed_row("7.png", 7, "It is <broken>.")
    return made(tmp_path / "two", rows)


def test_classes_have_their_mean_map(bulk_of_two: Bulk) -> None:
    found = summarize(bulk_of_two)
    assert [(one.name, one.images) for one in found.classes] == [("cat <b>", PART - 1), ("dog", 20)]
    np.testing.assert_allclose(found.classes[1].map, [0.0, 1.0, -0.5, 0.9], rtol=1e-6)
    assert found.failures == (("7.png", "It is <broken>."),)


@pytest.mark.filterwarnings("error")  # three different maps are three groups at most
def test_what_stands_out_is_named(bulk_of_two: Bulk) -> None:
    found = summarize(bulk_of_two)
    assert [name for name, _ in found.outside] == ["3.png"]
    assert [name for name, _ in found.one_region] == ["5.png", *(f"{PART + i}.png" for i in range(19))]
    sizes = [one.images for one in found.groups]
    assert sum(sizes) == PART - 1 + 20
    dogs = [one for one in found.groups if one.classes == ("dog",)]
    assert sum(one.images for one in dogs) == 20


def test_drift_is_against_another_data_set(bulk_of_two: Bulk, tmp_path: Path) -> None:
    other = made(tmp_path / "other", [row(i, "dog", [0.0, -1.0, 0.5, -0.9]) for i in range(5)])
    found = {one.name: one for one in summarize(bulk_of_two, other).drift}
    assert found["dog"].share == (20 / (PART + 19), 1.0)
    assert found["dog"].correlation == pytest.approx(-1)
    assert np.isnan(found["cat <b>"].correlation)


def test_the_page_escapes_what_it_shows(bulk_of_two: Bulk, tmp_path: Path) -> None:
    page = write_summary(tmp_path / "summary.html", summarize(bulk_of_two, bulk_of_two)).read_text()
    assert "cat &lt;b&gt;" in page
    assert "<broken>" not in page
    assert page.count("data:image/png") >= 4


def test_the_page_shows_images_that_stand_out(bulk_of_two: Bulk, tmp_path: Path) -> None:
    items = [Item(f"{i}.png", str(tmp_path / f"{i}.png")) for i in range(PART + 20)]
    for item in items:
        Image.new("RGB", (400, 200), "white").save(item.path)
    keep_locations(bulk_of_two.folder, cast(Explainer, SimpleNamespace(run=None)), items, anonymous=False)
    (tmp_path / "3.png").unlink()
    found = summarize(bulk_of_two)
    write_summary(tmp_path / "named.html", found)
    page = write_summary(tmp_path / "seen.html", found, bulk_of_two)
    assert "image/jpeg" not in (tmp_path / "named.html").read_text()
    shown = {
        alt: Image.open(io.BytesIO(base64.b64decode(content)))
        for content, alt in re.findall(r'jpeg;base64,([^"]+)"[^>]* alt="([^"]*)"', page.read_text())
    }
    assert "3.png" not in shown  # gone, but named
    assert "<td>3.png</td>" in page.read_text()
    assert shown["5.png"].size == (144, 72)
    assert shown["5.png"].getextrema() == ((255, 255),) * 3
    # The upper right region has nearly all of the evidence, the lower right one none.
    found_map = np.asarray(shown["The map of 5.png over it"]).astype(int)
    assert np.abs(found_map[:30, 80:140] - found_map[10, 100]).max() < 12
    red, _, blue = found_map[10, 100]
    assert red > blue + 60
    assert found_map[50:, 90:].min() > 245


def test_the_page_has_pictures_of_some_dozens_at_most(tmp_path: Path) -> None:
    rows = [row(i, "dog", [0.0, 1.0 + i, 0.1, 0.0], inside=0.1, box_share=0.5) for i in range(PART)]
    bulk = made(tmp_path / "out", rows)
    items = [Item(f"{i}.png", str(tmp_path / "same.png")) for i in range(PART)]
    Image.new("L", (3000, 2000), 90).save(tmp_path / "same.png")
    keep_locations(bulk.folder, cast(Explainer, SimpleNamespace(run=None)), items, anonymous=False)
    page = write_summary(tmp_path / "page.html", summarize(bulk), bulk)
    assert 12 <= page.read_text().count("image/jpeg") <= 2 * (12 + 12 + 30)


def test_regions_must_be_windows(run: Run, pictures: Path, tmp_path: Path) -> None:
    own = explain_bulk(run, [pictures / "ward1"], tmp_path, **{**QUICK, "players": "superpixels:6"})
    with pytest.raises(ProtoPFaithError, match="explain with windows"):
        summarize(own)


def test_nothing_explained_is_said(tmp_path: Path) -> None:
    with pytest.raises(ProtoPFaithError, match="no finished part"):
        summarize(made(tmp_path, [failed_row("x.png", 0, "broken")]))

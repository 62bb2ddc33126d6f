"""Where run and images lie: kept for their owner, beside anonymous results instead of in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Bulk, Explainer
from protopfaith.explanation.bulk.inputs import Item
from protopfaith.explanation.bulk.locations import find_location, keep_locations, locations_path
from protopfaith.training import Run

ITEMS = [
    Item("a", "/images/a.png"),
    Item("b", "/images/all.tar", 512, 100),
    Item("odd", os.fsdecode(b"/images/\xff.png")),  # a name that is no text
]


@pytest.mark.parametrize("anonymous", [False, True])
def test_what_was_kept_is_found(explainer: Explainer, run: Run, tmp_path: Path, anonymous: bool) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    keep_locations(folder, explainer, ITEMS, anonymous=anonymous)
    assert [path.name for path in folder.iterdir()] == ([] if anonymous else ["_where.parquet"])
    for item in ITEMS:
        found, root, again = find_location(folder, item.name)
        assert found == run.folder.absolute()
        assert root is None  # drawn images have none
        assert again == item


def test_the_owner_alone_may_read_it(explainer: Explainer, tmp_path: Path) -> None:
    keep_locations(tmp_path, explainer, ITEMS, anonymous=False)
    assert locations_path(tmp_path, anonymous=False).stat().st_mode & 0o077 == 0


def test_it_is_written_once(explainer: Explainer, tmp_path: Path) -> None:
    keep_locations(tmp_path, explainer, ITEMS, anonymous=False)
    keep_locations(tmp_path, explainer, [], anonymous=False)  # another process of the same work
    assert find_location(tmp_path, "a")[2] == ITEMS[0]


def test_a_network_without_a_run_is_kept_as_such(explainer: Explainer, tmp_path: Path) -> None:
    bare = Explainer(explainer.model, preprocessing=explainer.preprocessing)
    keep_locations(tmp_path, bare, ITEMS, anonymous=False)
    assert find_location(tmp_path, "a")[:2] == (None, None)


@pytest.mark.parametrize("content", [None, b"", b"PAR1"])
def test_what_is_gone_or_damaged_is_one_sentence(content: bytes | None, tmp_path: Path) -> None:
    if content is not None:
        locations_path(tmp_path, anonymous=False).write_bytes(content)
    with pytest.raises(ProtoPFaithError, match="does not say where the image a lies; give --run and --image"):
        find_location(tmp_path, "a")


def test_an_image_of_another_name_is_not_found(bulk: Bulk) -> None:
    assert Path(find_location(bulk.folder, "3.png")[2].path).name == "3.png"
    with pytest.raises(ProtoPFaithError, match=r"where the image x\.png lies"):
        find_location(bulk.folder, "x.png")

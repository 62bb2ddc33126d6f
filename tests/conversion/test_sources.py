"""Prototypes of a converted network find the images that they come from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from protopfaith.conversion import convert
from protopfaith.conversion.sources import read_boxes
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import explain, load_explanation
from tests.conversion.conftest import Pushed


def test_sources_by_the_numbers_of_the_original(pushed: Pushed, tmp_path: Path) -> None:
    found = convert(pushed.path, tmp_path / "run", root=pushed.images, boxes=pushed.boxes)
    assert found.sources is not None
    assert (found.sources.by_index, found.sources.on_patch) == (6, 6)
    assert [source and source.image for source in found.run.model().sources] == pushed.sources
    assert found.run.model().class_names == ("blue", "green", "red")


def test_sources_by_the_nearest_patch_without_numbers(pushed: Pushed, tmp_path: Path) -> None:
    found = convert(pushed.path, tmp_path / "run", root=pushed.images)
    assert found.sources is not None
    assert (found.sources.by_patch, found.sources.on_patch) == (6, 6)
    assert [source and source.image for source in found.run.model().sources] == pushed.sources
    assert "nearest patch" in str(found.sources)


def test_wrong_numbers_are_not_believed(pushed: Pushed, tmp_path: Path) -> None:
    wrong = np.load(pushed.boxes)
    wrong[:3, 0] = (0, 99_999, 7)
    np.save(tmp_path / "bb.npy", wrong)
    found = convert(pushed.path, tmp_path / "run", root=pushed.images, boxes=tmp_path / "bb.npy")
    assert found.sources is not None
    assert (found.sources.by_index, found.sources.by_patch) == (3, 3)
    assert [source and source.image for source in found.run.model().sources] == pushed.sources


def test_prototypes_that_lie_nowhere_are_told(pushed: Pushed, tmp_path: Path) -> None:
    from tests.conversion.originals import original, save_original

    path = save_original(original(size=64), tmp_path / "never_pushed.pth")
    found = convert(path, tmp_path / "run", root=pushed.images)
    assert found.sources is not None
    assert found.sources.on_patch < 6
    assert "do not lie on their patch" in str(found.sources)
    assert not any(source.exact for source in found.run.model().sources if source)

    why = explain(found.run, pushed.images / "test" / "red" / "0.png", players=32, budget=64)
    assert load_explanation(why.save(tmp_path / "why")[0]).evidence[0].source == why.evidence[0].source
    page = why.report(tmp_path / "why.html").read_text(encoding="utf-8")
    assert "nearest patch" in page
    assert "On the training image nearest to it" in page
    assert "which only resembles them" in page
    assert "a part of a training image<" not in page  # it would say that the prototype is one


def test_prototypes_that_lie_on_their_patch_are_shown_as_it(pushed: Pushed, tmp_path: Path) -> None:
    found = convert(pushed.path, tmp_path / "run", root=pushed.images)
    assert all(source and source.exact for source in found.run.model().sources)
    why = explain(found.run, pushed.images / "test" / "red" / "0.png", players=32, budget=64)
    page = why.report(tmp_path / "why.html").read_text(encoding="utf-8")
    assert "a part of a training image<" in page
    assert "only resembles" not in page


@pytest.mark.parametrize("order", ["a/10.png a/9.png b/1.png", "a/A.png a/a.png"])
def test_image_folder_sorts_names_as_texts(order: str) -> None:
    assert sorted(order.split()) == order.split()


def test_boxes_must_be_those_of_the_network(tmp_path: Path) -> None:
    np.save(tmp_path / "bb.npy", np.zeros((6, 6)))
    assert read_boxes(tmp_path / "bb.npy", 6)[5].image == 0
    with pytest.raises(ProtoPFaithError, match="for each of the 5 prototypes"):
        read_boxes(tmp_path / "bb.npy", 5)
    np.save(tmp_path / "bb.npy", np.full((6, 6), np.inf))
    assert not read_boxes(tmp_path / "bb.npy", 6)


def _declared(shape: str) -> bytes:
    """The beginning of an array that says it has this shape."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00v\x00" + header.ljust(117).encode() + b"\n"


@pytest.mark.parametrize("content", [_declared("(10000000000000, 6)"), _declared("[[[[["), b"\x93NUMPY"])
def test_boxes_that_are_no_array_are_one_sentence(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "bb.npy").write_bytes(content)
    with pytest.raises(ProtoPFaithError, match="cannot be read as an array"):
        read_boxes(tmp_path / "bb.npy", 6)
    np.savez(tmp_path / "bb.npz", boxes=np.zeros((6, 6)))
    with pytest.raises(ProtoPFaithError, match="cannot be read as an array"):
        read_boxes(tmp_path / "bb.npz", 6)
    (tmp_path / "bb.npy").write_bytes(b"none")
    with pytest.raises(ProtoPFaithError, match="cannot be read as an array"):
        read_boxes(tmp_path / "bb.npy", 6)

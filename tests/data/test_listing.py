from __future__ import annotations

import os
from pathlib import Path

import pytest

from protopfaith.data.listing import (
    Entry,
    Listing,
    expand_folders,
    image_files,
    unlisted_note,
)
from protopfaith.errors import ProtoPFaithError


@pytest.fixture
def folder(tmp_path: Path, save) -> Path:
    for number, name in enumerate(("b.PNG", "a.jpg", "deep/c.png", ".hidden/d.png", "notes.txt")):
        (tmp_path / "images" / name).parent.mkdir(parents=True, exist_ok=True)
        save(tmp_path / "images" / name, number) if not name.endswith("txt") else (
            tmp_path / "images" / name
        ).write_text("no image")
    return tmp_path / "images"


def test_images_are_found_in_order_and_hidden_ones_are_not(folder) -> None:
    assert [path.relative_to(folder).as_posix() for path in image_files(folder)] == [
        "a.jpg",
        "b.PNG",
        "deep/c.png",
    ]


def test_links_to_nothing_are_found_and_pipes_are_not(folder) -> None:
    before = image_files(folder)
    (folder / "gone.png").symlink_to("nowhere.png")
    (folder / "round.png").symlink_to("round.png")
    (folder / "gone.txt").symlink_to("nowhere.txt")
    os.mkfifo(folder / "pipe.png")
    assert set(image_files(folder)) - set(before) == {folder / "gone.png", folder / "round.png"}


def test_folders_become_their_images_and_files_stay(folder, tmp_path) -> None:
    assert expand_folders([folder / "a.jpg", folder]) == [folder / "a.jpg", *image_files(folder)]
    (tmp_path / "empty").mkdir()
    with pytest.raises(ProtoPFaithError, match="holds no images"):
        expand_folders([tmp_path / "empty"])


def test_a_listing_s_stamp_changes_with_its_files(folder) -> None:
    listing = Listing("mine", folder, (Entry("a.jpg", "x"), Entry("b.PNG", "y")), ("x", "y"))
    before = listing.stamp()
    assert listing.stamp() == before
    (folder / "a.jpg").write_bytes((folder / "b.PNG").read_bytes() + b"more")
    assert listing.stamp() != before


def test_a_file_in_the_place_of_one_that_is_as_large_and_as_old_changes_the_stamp(folder) -> None:
    listing = Listing("mine", folder, (Entry("a.jpg", "x"), Entry("b.PNG", "y")), ("x", "y"))
    before, status = listing.stamp(), (folder / "a.jpg").stat()
    (folder / "a.jpg").write_bytes(bytes(status.st_size))
    os.utime(folder / "a.jpg", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert listing.stamp() != before


def test_images_without_a_label_are_told(folder) -> None:
    assert unlisted_note(folder, folder, ["a.jpg", "b.PNG", "deep/c.png"]) == []
    (note,) = unlisted_note(folder, folder, ["a.jpg"])
    assert "2 images" in note
    assert "deep/c.png" in note


@pytest.mark.parametrize(("name", "split"), [("Test", "test"), ("TRAINING", "train"), ("val", "validation")])
def test_splits_have_their_usual_names(name: str, split: str) -> None:
    assert Entry("a.png", "cat", name).split == split


def test_a_class_that_a_listing_lacks_is_told(tmp_path: Path) -> None:
    with pytest.raises(ProtoPFaithError, match=r"b\.png is of the class 'blob', which is not among"):
        Listing("mine", tmp_path, (Entry("a.png", "x"), Entry("b.png", "blob")), ("x",))


def test_an_unknown_split_is_no_training() -> None:
    with pytest.raises(ProtoPFaithError, match=r"a\.png is in the split 'tset', which is none of train"):
        Entry("a.png", "cat", "tset")


def test_pictures_of_a_run_among_images_are_left_out(folder: Path) -> None:
    run = folder / "runs" / "first"
    (run / "evaluation").mkdir(parents=True)
    for name in ("recipe.yaml", "model.safetensors", "curves.png", "evaluation/confusion.png"):
        (run / name).write_bytes(b"")
    before = [path for path in expand_folders([folder]) if "runs" in path.parts]
    assert before == []
    with pytest.raises(ProtoPFaithError, match="first is the folder of a run"):
        expand_folders([run])

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from protopfaith.anonymous import public_names, safe_cell, without_path, write_key
from protopfaith.errors import ProtoPFaithError


def test_no_folders_beyond_what_tells_files_apart() -> None:
    paths = ["/home/jane/a/x.png", "/home/jane/b/x.png", "/home/jane/y.png", "/home/jane/y.png"]
    assert public_names(paths) == ["a/x.png", "b/x.png", "y.png", "y.png"]
    assert public_names(["x.png"]) == ["x.png"]


def test_numbers_say_nothing() -> None:
    assert public_names(["/a/x.png", "/b/y.png", "/a/x.png"], anonymous=True) == [
        "image-0001",
        "image-0002",
        "image-0001",
    ]


@pytest.mark.parametrize("path", ["im/n", "/im/mag/g", "e/an.png"])
def test_names_and_folders_are_replaced_as_whole_words(path: str) -> None:
    said = without_path(f"The image {path} cannot be read", Path(path), "image-0001")
    assert said == "The image image-0001 cannot be read"


def test_the_key_is_its_owner_s_alone(tmp_path: Path) -> None:
    path = write_key(tmp_path / "key.csv", ["/a/x.png", "=evil.png"])
    assert path.stat().st_mode & 0o077 == 0
    with path.open(newline="") as file:
        assert list(csv.reader(file)) == [
            ["name", "file"],
            ["image-0001", "/a/x.png"],
            ["image-0002", "'=evil.png"],
        ]


def test_a_key_replaces_keys_and_no_other_tables(tmp_path: Path) -> None:
    path = write_key(tmp_path / "key.csv", ["/a/x.png"])
    assert "y.png" in write_key(path, ["/a/y.png"]).read_text()
    path.write_text("file,label\nx.png,cat\n")
    with pytest.raises(ProtoPFaithError, match=r"key\.csv is there already and no key file"):
        write_key(path, ["/a/x.png"])
    assert path.read_text() == "file,label\nx.png,cat\n"


def test_no_cell_is_a_formula() -> None:
    for text in ("=1+1", "+1", "-1", "@x", "\t=1"):
        assert not safe_cell(text).startswith(("=", "+", "-", "@", "\t"))
    assert safe_cell("cat") == "cat"


def test_a_short_name_is_no_part_of_other_words() -> None:
    assert (
        without_path("d is a folder, expected", Path("d"), "a.png (mask)")
        == "a.png (mask) is a folder, expected"
    )

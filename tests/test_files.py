from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.files import (
    begins,
    check_folder,
    check_plain,
    check_readable,
    decoding_reason,
    existing_folder,
    is_whole,
    leads_nowhere,
    reason,
    sha256,
)


def test_fingerprints(tmp_path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 3_000_000)
    assert sha256(tmp_path / "file") == hashlib.sha256(b"x" * 3_000_000).hexdigest()


def test_a_root_must_be_a_folder_with_something_in_it(tmp_path) -> None:
    for root in (None, tmp_path / "missing", tmp_path):
        with pytest.raises(ProtoPFaithError):
            existing_folder(root, "mine")


def test_pages_and_pictures_are_whole_up_to_their_end(tmp_path) -> None:
    page, other = tmp_path / "page.html", tmp_path / "other.tiff"
    assert not is_whole(page)
    for text, whole in (("", False), ("<html><p>", False), ("<html></html>\n", True)):
        page.write_text(text)
        assert is_whole(page) is whole
    other.write_text("x")
    assert is_whole(other)
    assert not is_whole(tmp_path)


def test_links_lead_nowhere_only_where_nothing_is(tmp_path) -> None:
    (tmp_path / "there").write_text("something")
    for name, target in (("good", "there"), ("bad", "not there"), ("loop", "loop"), ("chain", "bad")):
        (tmp_path / name).symlink_to(target)
    names = ("there", "good", "bad", "loop", "chain", "never was")
    assert [name for name in names if leads_nowhere(tmp_path / name)] == ["bad", "loop", "chain"]


def test_what_a_file_begins_with(tmp_path) -> None:
    path, pipe = tmp_path / "table", tmp_path / "pipe"
    os.mkfifo(pipe)
    for content, answer in (("name,file", True), ("name,file,more", True), ("", True), ("name", False)):
        path.write_text(content)
        assert begins(path, b"name,file") is answer
    assert begins(pipe, b"x")  # not waited for
    assert begins(tmp_path / "nothing", b"x")


def test_a_folder_in_the_place_of_a_file_is_told(tmp_path: Path) -> None:
    for check in (check_plain, check_readable):
        check(tmp_path / "nothing")
        with pytest.raises(ProtoPFaithError, match="is a folder, where a file is expected"):
            check(tmp_path)


def test_a_file_in_the_place_of_a_folder_is_told(tmp_path):
    check_folder(tmp_path)
    check_folder(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(ProtoPFaithError, match="file is a file, where a folder is expected"):
        check_folder(tmp_path / "file")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("Couldn't deserialize thrift: TProtocolException: Invalid data", "damaged"),
        ("Parquet magic bytes not found in footer.", "damaged"),
        ("broken data stream when reading image file", "damaged"),
        ("Error -3 while decompressing data: invalid block type", "damaged"),
        ("Use force=True to force reading", "no mark of a DICOM file"),
        ("embedded null byte", "null byte"),
    ],
)
def test_words_of_other_libraries_are_none_of_ours(said: str, words: str) -> None:
    assert words in reason(OSError(said))
    assert said not in reason(OSError(said))


def test_what_the_system_says_is_said_without_numbers_and_paths() -> None:
    assert reason(PermissionError(13, "Permission denied", "/secret/x.png")) == "Permission denied"


def test_what_broken_content_leads_a_decoder_into_is_no_message() -> None:
    assert (
        decoding_reason(TypeError("int() argument must be a string, not 'list'")) == "its content is damaged"
    )
    assert decoding_reason(ValueError("its palette is missing")) == "its palette is missing"

from __future__ import annotations

from pathlib import Path

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.writing import atomic, check_can_be_made, refuse_existing, refuse_others


def _fail_while_writing(path) -> None:
    with atomic(path) as partial:
        partial.write_text("half of the sec")
        raise RuntimeError


def test_a_file_is_whole_or_as_it_was(tmp_path) -> None:
    path = tmp_path / "deep" / "file"
    with atomic(path) as partial:
        partial.write_text("first")
        assert not path.exists()
    with pytest.raises(RuntimeError):
        _fail_while_writing(path)
    assert path.read_text() == "first"
    assert list(path.parent.iterdir()) == [path]


def test_so_is_a_folder(tmp_path) -> None:
    with atomic(tmp_path / "folder") as partial:
        partial.mkdir()
        (partial / "a").write_text("a")
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["a"]


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("file/inside", "move the file away"),
        ("folder", "move the folder of that name away"),
        ("x" * 300, "shorter name"),
    ],
)
def test_where_nothing_can_be_written(tmp_path, name: str, remedy: str) -> None:
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "folder").mkdir()
    with (
        pytest.raises(ProtoPFaithError, match=f"Could not write .*{remedy}"),
        atomic(tmp_path / name) as partial,
    ):
        partial.write_text("x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_folder_that_cannot_be_made_is_told_before_the_work(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.chdir(tmp_path)
    for folder in (Path("new"), Path("new/deeper"), tmp_path / "new" / "deeper", tmp_path):
        check_can_be_made(folder)
    for folder in (Path("file/run"), tmp_path / "file" / "deep" / "run"):
        with pytest.raises(ProtoPFaithError, match="file is none"):
            refuse_existing(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="has no folder that even root cannot write to")
@pytest.mark.parametrize("folder", ["/proc", "/proc/run", "/proc/deeper/run"])
def test_a_folder_that_takes_nothing_new_is_told_before_the_work(folder: str) -> None:
    with pytest.raises(ProtoPFaithError, match=r"^/proc.* cannot be written: in /proc nothing can be made"):
        check_can_be_made(Path(folder))


@pytest.mark.parametrize("content", [b"weights", b"<html>"])
def test_a_file_of_another_kind_is_not_overwritten(tmp_path, content):
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ProtoPFaithError, match=r"model is there already and no page.*result\.html"):
        refuse_others(tmp_path / "model", (".html",), b"<!doctype", "page")
    for name, allowed in (("new", b""), ("empty", b""), ("a.HTML", b"x"), ("page", b"<!DOCTYPE html>")):
        if name != "new":
            (tmp_path / name).write_bytes(allowed)
        refuse_others(tmp_path / name, (".html",), b"<!doctype", "page")


def test_a_folder_that_somebody_makes_during_the_work_stays(tmp_path) -> None:
    def both_make_it() -> None:
        with atomic(tmp_path / "run") as partial:
            partial.mkdir()
            (tmp_path / "run").mkdir()
            (tmp_path / "run" / "theirs").write_text("theirs")

    with pytest.raises(ProtoPFaithError, match="was put there meanwhile"):
        both_make_it()
    assert [path.name for path in tmp_path.rglob("*")] == ["run", "theirs"]

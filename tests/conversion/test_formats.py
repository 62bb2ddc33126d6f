"""A checkpoint goes to the reader that is named, or else to the last registered one that knows it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from protopfaith.conversion import FORMATS, ForeignNetwork, Format, convert
from protopfaith.conversion.formats import Asked, read_network
from protopfaith.errors import ProtoPFaithError


def test_a_folder_of_nothing_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ProtoPFaithError, match="no network of a known format"):
        convert(tmp_path, tmp_path / "run")


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_format_refuses_a_stranger(name: str, tmp_path: Path) -> None:
    torch.save({"weights": torch.zeros(3)}, tmp_path / "a.pth")
    with pytest.raises(ProtoPFaithError):
        convert(tmp_path / "a.pth", tmp_path / "run", format=name)
    assert FORMATS[name].summary


def test_a_format_of_ones_own_is_asked_when_it_looks_right(
    network: ForeignNetwork, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[tuple[Path, Asked]] = []

    def read(path: Path, asked: Asked) -> ForeignNetwork:
        heard.append((path, asked))
        return network

    mine = Format("a file of mine", lambda path: path.suffix == ".mine", read)
    monkeypatch.setitem(FORMATS, "mine", mine)
    path, asked = tmp_path / "a.mine", Asked(size=64)
    path.write_bytes(b"mine")  # any file may be one of the original program, which is asked later
    assert read_network(path, asked) is network
    assert heard == [(path, asked)]
    with pytest.raises(ProtoPFaithError):  # another reader, if one is named
        read_network(path, asked, "protopnet")
    assert len(heard) == 1


def test_a_path_where_nothing_is_names_all_formats(tmp_path: Path) -> None:
    with pytest.raises(ProtoPFaithError, match="There is nothing at") as caught:
        read_network(tmp_path / "nothing", Asked())
    for found in FORMATS.values():
        assert found.summary in str(caught.value)


def test_a_format_of_somebody_else_that_fails_is_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "net.bin").write_bytes(b"x")
    for read, words in (
        (lambda path, asked: {}["tensors"], r"The format 'mine' fails with KeyError: 'tensors' \(line"),
        (lambda path, asked: None, "What the format 'mine' reads must be a ForeignNetwork, not None"),
    ):
        monkeypatch.setitem(FORMATS, "mine", Format("mine", lambda path: True, read))
        for name in ("mine", None):
            with pytest.raises(ProtoPFaithError, match=words):
                read_network(tmp_path / "net.bin", Asked(), name)
    with pytest.raises(ProtoPFaithError, match="The format 'other' must be a Format"):
        FORMATS.register("other")(len)  # type: ignore[arg-type]

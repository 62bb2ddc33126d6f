"""A file of torch is read without running anything from it."""

from __future__ import annotations

import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from protopfaith.conversion.unpickling import Stub, read_foreign
from protopfaith.errors import ProtoPFaithError


class Smuggled:
    """Calls whatever it is told to when it is unpickled."""

    def __init__(self, *call: Any):
        self.call = call

    def __reduce__(self) -> Any:
        return self.call[0], self.call[1:]


def calls(mark: Path) -> dict[str, Smuggled]:
    """Ways to run something, each of which would leave a file."""
    program = f"open({str(mark)!r}, 'w').close()"
    return {
        "os.system": Smuggled(os.system, f"touch {mark}"),
        "exec": Smuggled(exec, program),
        "eval": Smuggled(eval, program),
        "getattr": Smuggled(getattr, Smuggled(__import__, "os"), "system"),
        "torch.load": Smuggled(torch.load, str(mark)),
        "Path.touch": Smuggled(Path.touch, mark),
    }


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("name", calls(Path()))
def test_a_smuggled_call_is_refused_and_never_made(name: str, zipped: bool, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    content = {"features.weight": torch.zeros(2), "epoch": [calls(mark)[name]]}
    torch.save(content, tmp_path / "a.pth", _use_new_zipfile_serialization=zipped)
    with pytest.raises(ProtoPFaithError, match="not read because it calls"):
        read_foreign(tmp_path / "a.pth")
    assert not mark.exists()


def test_a_call_hidden_in_the_state_of_a_layer_is_refused(tmp_path: Path) -> None:
    layer = nn.Linear(2, 2)
    layer.extra = Smuggled(os.system, f"touch {tmp_path / 'mark'}")  # type: ignore[assignment]
    torch.save(layer, tmp_path / "a.pth")
    with pytest.raises(ProtoPFaithError, match=r"calls posix\.system|calls nt\.system"):
        read_foreign(tmp_path / "a.pth")
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("program", ["build", "setattr"])
def test_a_pickle_cannot_change_what_it_finds(program: str, tmp_path: Path) -> None:
    """Attributes that it sets of an allowed function are gone with the next file."""
    found = b"ctorch._utils\n_rebuild_tensor_v2\n"
    state = b"}X\x04\x00\x00\x00evilK\x01s" if program == "build" else b"N}X\x04\x00\x00\x00evilK\x01s\x86"
    torch.save({}, tmp_path / "a.pth")
    with zipfile.ZipFile(tmp_path / "b.pth", "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\x02" + found + state + b"b.")
    with suppress(ProtoPFaithError):
        read_foreign(tmp_path / "b.pth")
    from protopfaith.conversion import unpickling

    assert not any(hasattr(function, "evil") for function in unpickling.ALLOWED.values())


@pytest.mark.parametrize("zipped", [True, False])
def test_tensors_come_back_as_they_were(zipped: bool, tmp_path: Path) -> None:
    base = torch.arange(24.0).reshape(4, 6)
    content: dict[str, Any] = OrderedDict(
        float=base,
        view=base[1:3, ::2],
        transposed=base.T,
        double=base.double(),
        half=base.half(),
        bfloat16=base.bfloat16(),
        long=base.long(),
        boolean=base > 3,
        empty=torch.zeros(0, 3),
        number=torch.tensor(7),
        parameter=nn.Parameter(base),
    )
    torch.save(
        {**content, "list": [1, (2.5, "text")], "set": {1, 2}},
        tmp_path / "a.pth",
        _use_new_zipfile_serialization=zipped,
    )
    found = read_foreign(tmp_path / "a.pth")
    for name, tensor in content.items():
        assert torch.equal(found[name], tensor), name
        assert found[name].dtype == tensor.dtype
    assert found["list"] == [1, (2.5, "text")]
    assert found["set"] == {1, 2}


def test_modules_become_stubs_that_cannot_be_called(tmp_path: Path) -> None:
    torch.save(nn.Sequential(nn.Conv2d(3, 2, 1), nn.ReLU()), tmp_path / "a.pth")
    found = read_foreign(tmp_path / "a.pth")
    assert isinstance(found, Stub)
    assert repr(found) == "<torch.nn.modules.container.Sequential>"
    with pytest.raises(Exception, match=r"it calls torch\.nn\.modules\.container\.Sequential"):
        type(found)()
    assert not callable(found)


def test_files_of_other_kinds_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    with pytest.raises(ProtoPFaithError, match="There is no file"):
        read_foreign(path)
    contents = {
        "text": b"hello",
        "empty": b"",
        "pickle": pickle.dumps({"a": 1}),
        "binary": bytes(range(256)) * 10,
    }
    for content in contents.values():
        path.write_bytes(content)
        with pytest.raises(ProtoPFaithError, match=r"a\.pth is"):
            read_foreign(path)
    torch.jit.script(nn.Linear(1, 1)).save(path)
    with pytest.raises(ProtoPFaithError, match="TorchScript"):
        read_foreign(path)


@pytest.mark.parametrize(
    ("begin", "says"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "git lfs pull"),
        (b"<!DOCTYPE html><html><title>Quota exceeded</title></html>", "a web page"),
    ],
)
def test_what_downloads_end_with_instead_is_told(begin: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    path.write_bytes(begin)
    with pytest.raises(ProtoPFaithError, match=says):
        read_foreign(path)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_file_that_is_cut_short_is_told(zipped: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    torch.save(nn.Linear(30, 30), path, _use_new_zipfile_serialization=zipped)
    content = path.read_bytes()
    for share in (0.3, 0.6, 0.95):
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(ProtoPFaithError):
            read_foreign(path)


def test_a_tensor_larger_than_its_numbers_is_refused(tmp_path: Path) -> None:
    torch.save(torch.zeros(1).expand(10**9), tmp_path / "a.pth")
    with pytest.raises(ProtoPFaithError, match="larger than its numbers"):
        read_foreign(tmp_path / "a.pth")


@pytest.mark.parametrize("number", [2**20, 2**31, 2**32 - 1])
def test_a_number_beyond_all_values_takes_no_memory(number: int, tmp_path: Path) -> None:
    program = b"\x80\x02]r" + struct.pack("<I", number) + b"."
    with pytest.raises(ProtoPFaithError, match="numbers values that it does not have"):
        read_foreign(_zipped(program, tmp_path / "model.pth"))
    (tmp_path / "old.pth").write_bytes(program)
    with pytest.raises(ProtoPFaithError, match="numbers values that it does not have"):
        read_foreign(tmp_path / "old.pth")


def test_tuples_of_the_same_tuple_take_no_time(tmp_path: Path) -> None:
    """Sixty levels, each of which holds the one below twice: 2^60 if it were counted out."""
    program = b"\x80\x02)" + b"".join(b"q%ch%c\x86" % (level, level) for level in range(60)) + b"."
    found = read_foreign(_zipped(program, tmp_path / "model.pth"))
    for _ in range(60):
        assert found[0] is found[1]
        found = found[0]
    assert found == ()


def _zipped(program: bytes, path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/data.pkl", program)
    return path


@pytest.mark.parametrize("content", [b"hello\n", b"", b"\x80\x02garbage", b"PK\x03\x04"])
def test_what_no_pickle_is_is_told_in_words_of_ours(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.pth").write_bytes(content)
    with pytest.raises(ProtoPFaithError, match=r"x\.pth is no file of torch\.save, or it is cut short; give"):
        read_foreign(tmp_path / "x.pth")

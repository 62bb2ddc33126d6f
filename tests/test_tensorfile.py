from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from protopfaith.tensorfile import TensorFileError, read_header, read_tensors, write_tensors

TENSORS = {
    "a": torch.arange(6.0).reshape(2, 3),
    "empty": torch.zeros(0, 4),
    "flag": torch.tensor([True, False]),
    "half": torch.tensor(1.5, dtype=torch.bfloat16),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_tensors(tmp_path / "file", "ours", {"names": ["ä"]}, TENSORS)
    return tmp_path / "file"


def test_what_was_written_is_read(path):
    header, tensors = read_tensors(path, "ours")
    assert header == read_header(path, "ours") == {"names": ["ä"]}
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)


def test_tensors_that_share_memory(tmp_path):
    one = torch.ones(3)
    write_tensors(tmp_path / "file", "ours", {}, {"a": one, "b": one})
    assert torch.equal(read_tensors(tmp_path / "file", "ours")[1]["b"], one)


def test_somebody_elses_file_has_no_header(tmp_path):
    save_file({"a": torch.ones(1)}, tmp_path / "file")
    assert read_header(tmp_path / "file", "ours") is None
    assert read_tensors(tmp_path / "file", "ours")[0] is None


@pytest.mark.parametrize("text", ["{no json", "[" * 100_000])
def test_a_header_that_is_no_json(tmp_path, text):
    save_file({"a": torch.ones(1)}, tmp_path / "file", {"ours": text})
    with pytest.raises(TensorFileError, match="not JSON"):
        read_header(tmp_path / "file", "ours")


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_flipped_bit_is_noticed(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("flip") / "file"
    write_tensors(path, "ours", {"names": ["a"]}, TENSORS)
    content = bytearray(path.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    try:
        header, tensors = read_tensors(path, "ours")
    except TensorFileError:
        return
    if header is not None:  # where it is, everything else is as it was
        assert header == {"names": ["a"]}
        assert all(torch.equal(tensors[name], TENSORS[name]) for name in TENSORS)


@pytest.mark.parametrize("length", [3, 3000])
def test_a_cut_file_is_told_in_words_of_our_own(tmp_path, length):
    path = tmp_path / "file.safetensors"
    write_tensors(path, "key", {}, {"a": torch.zeros(2000)})
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(TensorFileError, match=r"^it (does not begin as such a file does|ends early)$"):
        read_tensors(path, "key")

"""Archives of arrays from elsewhere are looked at before they are read."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.npz import read_npz


def test_arrays_come_back(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=np.eye(3), name=np.array("y"))
    found = read_npz(tmp_path / "a.npz")
    assert np.array_equal(found["x"], np.eye(3))
    assert str(found["name"]) == "y"


def test_what_would_inflate_beyond_the_limit_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros(10_000))
    monkeypatch.setenv("PROTOPFAITH_MAX_FILE", "20000")
    with pytest.raises(ProtoPFaithError, match=r"a\.npz have 80,\d+ bytes, more than 20,000.*MAX_FILE"):
        read_npz(tmp_path / "a.npz")


def test_a_pipe_is_no_archive(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.npz")
    with pytest.raises(OSError, match="no plain file"):
        read_npz(tmp_path / "a.npz")

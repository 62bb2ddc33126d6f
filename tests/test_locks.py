from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.locks import exclusive

HOLD = """
import sys
from pathlib import Path
from protopfaith.locks import exclusive
with exclusive(Path(sys.argv[1]), "The run"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_second_is_told_who_holds_it(tmp_path: Path) -> None:
    told = pytest.raises(ProtoPFaithError, match=f"The run is in use by process {os.getpid()} on")
    with exclusive(tmp_path / ".lock", "The run"), told:
        exclusive(tmp_path / ".lock", "The run").__enter__()
    assert not (tmp_path / ".lock").exists()


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline().strip() == "held"
    with pytest.raises(ProtoPFaithError, match=f"process {holder.pid}"):
        exclusive(tmp_path / ".lock", "The run").__enter__()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with exclusive(tmp_path / ".lock", "The run"):
        pass


def test_where_nothing_can_be_written_nothing_is_locked(tmp_path: Path) -> None:
    with exclusive(tmp_path / "missing" / ".lock", "The run"):
        pass

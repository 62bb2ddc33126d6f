"""`protopfaith serve`: it says where it listens, and ends when it is interrupted."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx


def test_it_serves_until_it_is_interrupted(run: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-u", "-m", "protopfaith", "serve", str(run), "--port", "0", "--no-browser"]
    with subprocess.Popen(
        [*command, "--device", "cpu"], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        found = None
        for line in process.stdout:
            found = found or re.search(r"http://127\.0\.0\.1:\d+/", line)
            if "Ctrl-C" in line:
                break
        assert found is not None
        assert "ProtoPFaith" in httpx.get(found[0], timeout=60).text
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) in (0, 130)
    assert list(tmp_path.iterdir()) == []

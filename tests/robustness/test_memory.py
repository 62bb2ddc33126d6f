"""Small files that claim to be large: refused by what they declare, before memory is taken.

In a process of its own, whose peak is measured: torch and its libraries take some 600 MB of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from tests.data.dicom_files import write_dicom
from tests.robustness import images, recipes, runs
from tests.robustness.harness import Case, Outcome, Place, judge

MOST = 1_500_000  # kilobytes
PARTS = (
    "bomb16",
    "a giant encoder",
    "a billion",
    "40,000",
    "billion laughs",
    "deep brackets",
    "huge",
    "inflates",
)


def deflated(place: Place) -> Path:
    """A DICOM file of a few megabytes that inflates to one and a half gigabytes."""
    path = write_dicom(place / "plain.dcm", np.zeros((20, 20), np.uint8))
    content = path.read_bytes()
    plain, packed = b"1.2.840.10008.1.2.1\0", b"1.2.840.10008.1.2.1.99"
    start = content.index(plain)
    length = int.from_bytes(content[start - 2 : start], "little")
    group = content.index(b"\x02\x00\x00\x00UL\x04\x00") + 8
    size = int.from_bytes(content[group : group + 4], "little")
    end = group + 4 + size
    meta = content[: start - 2] + (len(packed)).to_bytes(2, "little") + packed + content[start + length : end]
    meta = meta[:group] + (size + len(packed) - length).to_bytes(4, "little") + meta[group + 4 :]
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = packer.compress(content[end:]) + b"".join(packer.compress(bytes(1 << 24)) for _ in range(96))
    bomb = place / "bomb.dcm"
    bomb.write_bytes(meta + body + packer.flush())
    return bomb


CASES = [
    *(case for module in (images, recipes, runs) for case in module.CASES if any(part in case.name for part in PARTS)),
    Case("predict a DICOM file that inflates", lambda p: ["predict", p.run, deflated(p)], says=("bomb.dcm", "inflates")),
]  # fmt: skip


def _peak() -> int:
    """Kilobytes of this program alone: what getrusage says may be those of the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def main(template: Path, folder: Path) -> None:
    """Runs the cases and prints their outcomes and the peak memory in kilobytes."""
    found: dict[str, Outcome] = {}
    for number, case in enumerate(CASES):
        place = Place(folder / str(number), template)
        place.folder.mkdir(parents=True)
        found[case.name] = judge(case, place)
    wrong = {name: f"{one.kind}: {one.text[-400:]}" for name, one in found.items() if one.kind != "fine"}
    print(json.dumps({"wrong": wrong, "peak": _peak()}))


def test_what_is_declared_is_not_believed(template: Path, tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("memory is counted otherwise")
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root / "src"), str(root)])
    done = subprocess.run(
        [sys.executable, "-m", "tests.robustness.test_memory", str(template), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=root,
        capture_output=True,
        text=True,
        timeout=900,
        check=True,
    )
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["wrong"] == {}
    assert result["peak"] < MOST


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))

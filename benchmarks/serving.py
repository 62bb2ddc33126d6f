"""Many visitors at once: does the explorer answer, share fairly, end its streams and give memory back?

    python benchmarks/serving.py RUN --visitors 16 --seconds 300
    python benchmarks/serving.py RUN --visitors 0 --device cuda --root DATA --settle 10    # one person alone

starts the server of `protopfaith serve` in a process of its own and lets visitors do, until time is up, what
people do: ask about test images, watch the map for a while, stop and continue, hide regions, change the
question, leave in the middle (the connection is cut), and send files that are no images. One visitor comes
first and alone, for the times that a single person sees, with what the server did when for the first
questions (`--lines`). Printed are these times, everything that was no
answer, how many evaluations each visitor got, open streams in the end, and the server's memory before and
after.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

SERVER = """
import sys
import tempfile
from pathlib import Path
from protopfaith.serve.bounds import Bounds
from protopfaith.serve.server import opened
bounds = Bounds(cases=64, unseen=20.0, stream=15.0, cleanup=5.0)
root = sys.argv[4] or None
def timed(place, name, words):
    import time
    did = getattr(place, name)
    def wrapper(*arguments, **named):
        start = time.perf_counter()
        found = did(*arguments, **named)
        end = time.perf_counter()
        print("@", time.time(), round(1000 * (end - start)), words(arguments, found), flush=True)
        return found
    setattr(place, name, wrapper)
if sys.argv[5] == "lines":
    from protopfaith.serve import case, state
    timed(case, "decide", lambda asked, found: "asking the network")
    timed(case.ResumableGame, "play", lambda asked, found:
        f"{asked[1]:,} evaluations with {len(asked[0].players)} regions, {found.evaluations:,} in all")
    timed(state, "blocks_of", lambda asked, found: f"drawing, {sum(map(len, found.values())) // 1000} kB")
with opened(sys.argv[1:2], port=0, device=sys.argv[2], root=root, bounds=bounds) as server:
    import threading, time
    def watch():
        while True:
            time.sleep(1)
            cases = list(server.state._cases.values())
            new = Path(sys.argv[3] + ".new")
            new.write_text(f"{len(cases)} {sum(case.live.readers for case in cases)}")
            new.replace(sys.argv[3])  # whoever reads it finds all of it
    threading.Thread(target=watch, daemon=True).start()
    server.run()
"""
DEFAULT = 12_288  # evaluations that an explanation has on a GPU
EVALUATIONS, REGIONS = re.compile(r"([\d,]+) evaluations"), re.compile(r"of (\d+) regions")


@dataclass
class Seen:
    """What visitors met with."""

    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    trouble: Counter[str] = field(default_factory=Counter)
    evaluations: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    done: Counter[str] = field(default_factory=Counter)
    lines: list[tuple[float, str]] = field(default_factory=list)  # when, and what happened

    def note(self, what: str) -> None:
        self.lines.append((time.time(), what))


class Visitor:
    """Somebody who asks, watches, and leaves."""

    def __init__(self, number: int, address: str, seen: Seen, end: float):
        self.number, self.seen, self.end = number, seen, end
        self.random = random.Random(number)
        self.client = httpx.AsyncClient(base_url=address, timeout=60)

    async def visit(self) -> None:
        async with self.client:
            await self.client.get("/")
            while time.monotonic() < self.end:
                try:
                    await self.one_case()
                except (httpx.HTTPError, AssertionError) as error:
                    self.seen.trouble[f"{type(error).__name__}: {str(error)[:80]}"] += 1

    async def one_case(self) -> None:
        start = time.monotonic()
        self.seen.note("QUESTION")
        said = await self.post("/ask/test", {"run": 0, "index": self.random.randrange(16)})
        case = said["case"]
        self.seen.note("visitor has the decision")
        await self.client.get(f"/case/{case}")
        self.seen.note("visitor has the page")
        self.seen.times["decision"].append(time.monotonic() - start)
        count = await self.watch(case, start, self.random.uniform(2, 8))
        if count:
            hidden = self.random.sample(range(count), 3)
            begin = time.monotonic()
            answer = await self.client.post(f"/case/{case}/hide", json={"regions": hidden, "count": count})
            if answer.status_code == 200:  # else finer regions came meanwhile
                self.seen.times["hide"].append(time.monotonic() - begin)
        what = self.random.choice(["stop", "change", "broken", "nothing"])
        self.seen.done[what] += 1
        if what == "stop":
            await self.post(f"/case/{case}/stop", {})
            await self.post(f"/case/{case}/continue", {"precision": 0.02})
            await self.watch(case, None, 3)
        elif what == "change":
            new = await self.post(f"/case/{case}/change", {"players": "windows:16"})
            await self.watch(new["case"], None, 2)
        elif what == "broken":
            answer = await self.client.post("/ask/file?run=0", content=b"\x89PNG broken")
            assert answer.status_code == 400, answer.status_code

    async def watch(self, case: str, start: float | None, seconds: float) -> int:
        """Reads the stream for a while, then cuts it; how many regions the map has."""
        end, count, made, begun = time.monotonic() + seconds, 0, 0, start
        async with self.client.stream("GET", f"/case/{case}/events") as stream:
            assert stream.status_code == 200
            async for line in stream.aiter_lines():
                if line.startswith("data: "):
                    blocks = json.loads(line[6:])
                    if start is not None and "pointable" in blocks.get("pictures", ""):
                        self.seen.times["first map"].append(time.monotonic() - start)
                        start = None
                    progress = blocks.get("progress", "")
                    if begun is not None and "pointable" in blocks.get("pictures", ""):
                        self.seen.note(f"visitor has a map, {len(line) // 1000} kB")
                    if begun is not None and 'data-stage="done"' in progress:
                        self.seen.times["precise"].append(time.monotonic() - begun)
                        begun = None
                    asked, regions = EVALUATIONS.search(progress), REGIONS.search(progress)
                    if asked and regions:
                        made, count = int(asked[1].replace(",", "")), int(regions[1])
                        if begun is not None and made >= DEFAULT:
                            self.seen.times[f"{DEFAULT:,}"].append(time.monotonic() - begun)
                            begun = None
                    if 'data-stage="failed"' in progress:
                        self.seen.trouble["a case failed"] += 1
                if time.monotonic() > end:
                    break
        self.seen.evaluations[self.number] += made
        return count

    async def post(self, path: str, message: dict) -> dict:
        answer = await self.client.post(path, json=message)
        assert answer.status_code == 200, f"{path.rpartition('/')[2]} {answer.status_code} {answer.text[:60]}"
        return answer.json()


def memory(process: int) -> int:
    """Resident bytes of a process."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


async def load(address: str, visitors: int, seconds: float) -> Seen:
    """All visitors at once."""
    seen, end = Seen(), time.monotonic() + seconds
    await asyncio.gather(*(Visitor(number, address, seen, end).visit() for number in range(visitors)))
    return seen


def told(name: str, seen: Seen) -> None:
    """Prints the times of some visitors."""
    for kind, times in seen.times.items():
        ordered = sorted(times)
        most = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
        middle = statistics.median(times)
        print(f"{name:>12} {kind:>10}: median {middle:.2f} s, 95% below {most:.2f} s ({len(times)})")


def told_lines(seen: Seen, said: Sequence[str], questions: int) -> None:
    """Prints what happened when, to a visitor and within the server."""
    lines = list(seen.lines)
    for line in said:
        if line.startswith("@ "):
            _, when, taken, what = line.split(maxsplit=3)
            lines.append((float(when), f"    {taken} ms: {what.strip()}"))
    start, number = 0.0, 0
    for when, what in sorted(lines):
        if what == "QUESTION":
            start, number = when, number + 1
            print(f"question {number}")
        elif 0 < number <= questions:
            print(f"  {when - start:6.3f} s  {what}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--visitors", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--alone", type=float, default=30, help="seconds of the first visitor, alone")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--root", type=Path, help="where the run's images are now")
    parser.add_argument("--rounds", type=int, default=1, help="how often so many come for so long")
    parser.add_argument("--rest", type=float, default=25, help="seconds before memory is looked at")
    parser.add_argument("--settle", type=float, default=0, help="seconds before the first visitor comes")
    parser.add_argument("--lines", type=int, default=0, help="questions whose time line is printed")
    options = parser.parse_args(arguments)
    state = Path(tempfile.mkdtemp()) / "state"
    command = [sys.executable, "-u", "-c", SERVER, str(options.run), options.device, str(state)]
    command += [str(options.root or ""), "lines" if options.lines else ""]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = next(m[0] for line in server.stdout if (m := re.search(r"http://\S+", line)))
            said: list[str] = []
            reader = threading.Thread(target=said.extend, args=[server.stdout], daemon=True)
            reader.start()
            time.sleep(options.settle)
            alone = asyncio.run(load(address, 1, options.alone))
            told("one visitor", alone)
            told_lines(alone, list(said), options.lines)
            if not options.visitors:
                return
            asyncio.run(load(address, options.visitors, options.alone))  # buffers of that many visitors
            time.sleep(options.rest)
            before = memory(server.pid)
            for number in range(options.rounds - 1):
                asyncio.run(load(address, options.visitors, options.seconds))
                time.sleep(options.rest)
                print(f"memory after round {number + 1}: {round(memory(server.pid) / 2**20)} MiB")
            seen = asyncio.run(load(address, options.visitors, options.seconds))
            told(f"{options.visitors} visitors", seen)
            during = memory(server.pid)
            time.sleep(options.rest)
            cases, readers = state.read_text(encoding="utf-8").split()
            shares = sorted(seen.evaluations.values())
            print(f"no answer: {sum(seen.trouble.values())} {dict(seen.trouble)}; done: {dict(seen.done)}")
            print(f"evaluations per visitor: least {shares[0]:,}, most {shares[-1]:,}")
            print(f"open streams in the end: {readers}; cases: {cases}")
            mega = [round(number / 2**20) for number in (before, during, memory(server.pid))]
            print(f"memory in MiB: {mega[0]} before, {mega[1]} under load, {mega[2]} after")
        finally:
            server.terminate()
            shutil.rmtree(state.parent, ignore_errors=True)


if __name__ == "__main__":
    main()

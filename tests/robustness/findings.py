"""Images with several findings: tables, recipes and runs that are wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from PIL import Image

from tests.robustness.harness import Case, Place
from tests.robustness.images import GOOD_PNG

COUNT = 36


def files() -> list[str]:
    """The images of the template."""
    return [f"{name}/{number}.png" for name in ("blue", "green", "red") for number in range(12)]


def rows(edema: Callable[[int], Any], head: str = "file,edema,mass") -> str:
    """A table with one finding that is in every second image, and another as given."""
    return "\n".join([head, *(f"{path},{edema(i)},{i % 2}" for i, path in enumerate(files()))])


def table(
    what: str, content: bytes | str, *options: str, good: bool = False, says: tuple[str, ...] = ()
) -> Case:
    def arguments(place: Place) -> list[Any]:
        data = content.encode() if isinstance(content, str) else content
        (place.images / "labels.csv").write_bytes(data)
        recipe = {"data": {"name": "findings", "size": [24, 24]}}
        place.write("findings.yaml", json.dumps({**recipe, "compute": {"accelerator": "cpu"}}))
        small = ["model.family=xprotonet", "model.prototype_channels=8", "model.prototypes_per_class=2"]
        short = ["schedule.cycles=1", "schedule.warmup.epochs=0", "schedule.joint.epochs=1"]
        short += ["schedule.classifier.epochs=1", "optimization.batch_size=12"]
        more = [*small, *short, *options]
        return ["train", "findings.yaml", "--root", place.images, "--out", "new", *more]

    return Case(f"train findings: {what}", arguments, good=good, says=says)


TABLES = [
    table("as it should be", rows(lambda i: int(i % 3 == 0)), good=True),
    table("labels missing", rows(lambda i: "" if i % 5 == 0 else int(i % 3 == 0)), good=True),
    table("labels as floats, in capitals", rows(lambda i: ("1.0", "FALSE", "NaN")[i % 3]), good=True),
    table("a byte order mark", b"\xef\xbb\xbf" + rows(lambda i: int(i % 3 == 0)).encode(), good=True),
    table("lines of Windows", rows(lambda i: int(i % 3 == 0)).replace("\n", "\r\n"), good=True),
    table("an empty table", "", says=("labels.csv",)),
    table("headings alone", "file,edema\n", says=("labels.csv",)),
    table("no column of files", rows(lambda i: i % 2, "name,edema,mass"), says=("file",)),
    table("a word as label", rows(lambda i: "perhaps" if i == 7 else i % 2), says=("perhaps", "Row 9")),
    table("a number that is no label", rows(lambda i: 3 if i == 7 else i % 2), says=("3",)),
    table("never there", rows(lambda i: 0), says=("edema", "never there")),
    table("always there", rows(lambda i: 1), says=("edema", "never absent")),
    table("all missing", "\n".join(["file,edema", *(f"{path}," for path in files())]), says=("labels.csv",)),
    table("a file twice", rows(lambda i: i % 2) + "\nblue/0.png,1,1", says=("blue/0.png",)),
    table("no such file", rows(lambda i: i % 2) + "\nnowhere.png,1,1", says=("nowhere.png",)),
    table("a path outside", rows(lambda i: i % 2) + "\n../x.png,1,1", says=("x.png",)),
    table("an absolute path", rows(lambda i: i % 2) + "\n/etc/hostname,1,1", says=("hostname",)),
    table("ragged rows", rows(lambda i: i % 2) + "\nblue/0.png,1", says=("labels.csv",)),
    table("a heading twice", rows(lambda i: i % 2, "file,mass,mass"), says=("mass",)),
    table("not UTF-8", b"file,edema\n\xff,1\n", says=("labels.csv",)),
    table("an image as table", GOOD_PNG, says=("labels.csv",)),
    table("an unknown split", "file,edema,split\nblue/0.png,1,later\n", says=("later",)),
    table("a list without labels", "file,labels\nblue/0.png,\n", says=("labels",)),
    table("no such finding", rows(lambda i: i % 2), "data.options={findings: [edma]}", says=("edema",)),
    table("findings as a number", rows(lambda i: i % 2), "data.options={findings: [3]}", says=("3",)),
    table("findings as a text", rows(lambda i: i % 2), "data.options={findings: edema}", says=("edema",)),
    table("no such table", rows(lambda i: i % 2), "data.options={table: no.csv}", says=("no.csv",)),
    table("no such patient column", rows(lambda i: i % 2), "data.options={patient: who}", says=("who",)),
    table("a number as table", rows(lambda i: i % 2), "data.options={table: 3}", says=("table",)),
    table("a number as patient", rows(lambda i: i % 2), "data.options={patient: 3}", says=("patient",)),
    table("one prototype", rows(lambda i: i % 2), "model.prototypes_per_class=1", says=("two prototypes",)),
    table("the other family", rows(lambda i: i % 2), "model.family=protopnet", says=("xprotonet",)),
    table("no such family", rows(lambda i: i % 2), "model.family=xprotonets", says=("xprotonet",)),
    table("a companion", rows(lambda i: i % 2), "costs.companion=1", "schedule.pretraining.epochs=1",
          says=("costs.companion",)),
    table("another similarity", rows(lambda i: i % 2), "model.similarity=log", says=("similarity",)),
]  # fmt: skip


def asked(
    what: str, command: Callable[[Place], list[Any]], *, good: bool = False, says: tuple[str, ...] = ()
) -> Case:
    def arguments(place: Place) -> list[Any]:
        place.copy("findings")
        return command(place)

    return Case(f"a run of findings: {what}", arguments, good=good, says=says)


QUICK = ["--players", "12", "--budget", "64", "--device", "cpu", "--no-sources"]
SHORT = ["--resamples", "10", "--device", "cpu"]


def elsewhere(place: Place, header: str = "file,mass", values: tuple[str, str] = ("0", "1")) -> Any:
    """A table of images that the network has not seen."""
    lines = [header]
    for number in range(4):
        path = place.folder / f"other{number}.png"
        Image.new("RGB", (24, 24), (60 * number, 200 - 40 * number, 30)).save(path)
        lines.append(f"{path.name},{values[number % 2]}")
    return place.write("other.csv", "\n".join(lines))


ASKED = [
    asked("explained", lambda p: ["explain", "findings", p.image, *QUICK, "--out", "out"], good=True),
    asked("judged", lambda p: ["evaluate", "findings", "--resamples", "10", "--device", "cpu"], good=True),
    asked("predicted", lambda p: ["predict", "findings", p.image, "--device", "cpu"], good=True),
    asked("compared", lambda p: ["explain", "findings", p.image, *QUICK, "--versus", "mass", "--out", "out"],
          says=("one by one",)),
    asked("the margin", lambda p: ["explain", "findings", p.image, *QUICK, "--explain", "margin", "--out", "out"],
          says=("logit",)),
    asked("moments", lambda p: ["explain", "findings", p.image, "--estimator", "dasp", "--no-sources", "--out",
                                "out"], says=("no moment rule",)),
    asked("no such finding", lambda p: ["explain", "findings", p.image, *QUICK, "--class", "mas", "--out", "out"],
          says=("mass",)),
    asked("a folder of classes", lambda p: ["evaluate", "findings", "--data", p.images], says=("one class", "CSV")),
    asked("groups of a table", lambda p: ["evaluate", "findings", "--data", elsewhere(p), "--groups", "names"],
          says=("column",)),
    asked("a table from elsewhere", lambda p: ["evaluate", "findings", "--data", elsewhere(p), *SHORT], good=True),
    asked("other findings", lambda p: ["evaluate", "findings", "--data", elsewhere(p, "file,cyst"), *SHORT],
          says=("green",)),
    asked("classes from elsewhere", lambda p: ["evaluate", "findings", "--data", "birds", *SHORT],
          says=("one class each",)),
    asked("a label that is none", lambda p: ["evaluate", "findings", "--data", elsewhere(p, values=("x", "0")), *SHORT],
          says=("Row 2",)),
    asked("nothing known", lambda p: ["evaluate", "findings", "--data", elsewhere(p, values=("", "")), *SHORT],
          says=("Nothing is known",)),
    asked("parts", lambda p: ["parts", "findings"], says=("part locations",)),
    asked("a split without images", lambda p: ["evaluate", "findings", "--split", "tests"], says=("test",)),
]  # fmt: skip

ALL = (*TABLES, *ASKED)
CASES = [case for case in ALL if not case.good]
GOOD = [case for case in ALL if case.good]

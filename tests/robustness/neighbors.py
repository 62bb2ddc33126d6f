"""One bad thing among good ones, and results among what is not ours."""

from __future__ import annotations

import csv
import io
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.robustness.harness import Case, Place

QUICK = ["--players", "24", "--budget", "4"]


def among_others(name: str, make: Callable[[Place], Any]) -> Case:
    """Two good images around a bad one: both are classified, and the exit code is that of a failure."""

    def command(place: Place) -> list[Any]:
        second = place.copy("good.png", "second.png")
        return ["predict", place.run, place.image, make(place), second, "--csv", place / "p.csv"]

    def check(place: Place) -> None:
        with (place / "p.csv").open(newline="") as file:
            found = {Path(row["image"]).name for row in csv.DictReader(file) if not row["error"]}
        assert found == {"good.png", "second.png"}, found

    return Case(f"among good images: {name}", command=command, check=check, says=("Failed",))


def folder(place: Place, name: str) -> Path:
    (place / name).mkdir()
    return place / name


def bulk(name: str, make: Callable[[Place], Any], says: tuple[str, ...], inputs: str = "image") -> Case:
    return Case(
        f"explain --bulk into {name}",
        command=lambda p: ["explain", p.run, getattr(p, inputs), *QUICK, "--bulk", make(p)],
        says=says,
    )


def link(place: Place) -> Path:
    (place / "link").symlink_to(place.run)
    return place / "link"


def tar(place: Place, *members: tuple[str, bytes]) -> Path:
    with tarfile.open(place / "w.tar", "w") as archive:
        for name, content in members:
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    return place / "w.tar"


def explained(name: str, make: Callable[[Place], Any], **more: Any) -> Case:
    return Case(
        f"explain --bulk of {name}",
        command=lambda p: ["explain", p.run, make(p), *QUICK, "--bulk", p / "out"],
        **more,
    )


def listed(place: Place, content: str) -> Path:
    place.images  # noqa: B018, copied when it is asked for
    return place.write("list.csv", content)


def one_row(place: Place) -> None:
    assert (place / "out" / "part-000000.parquet").is_file()


CASES: list[Case] = [
    among_others("missing", lambda p: p / "nowhere.png"),
    among_others("a folder without images", lambda p: folder(p, "empty")),
    among_others("a folder named like an image", lambda p: folder(p, "x.png")),
    among_others("a name of 5,000 letters", lambda p: "x" * 5000),
    among_others("/dev/full", lambda p: "/dev/full"),
    bulk("its own run", lambda p: p.run, ("a run", "--bulk")),
    bulk("a link to its run", link, ("a run", "--bulk")),
    bulk("the folder of the images", lambda p: p.images / "red", ("not ours", "--bulk"), "images"),
    bulk("a folder with other things", lambda p: p.write("o/thesis.txt", "x").parent, ("thesis.txt",)),
    bulk("a name that is no text", lambda p: b"\xff", ("--bulk",)),
    Case("explain into its own run", command=lambda p: ["explain", p.run, p.image, "--out", p.run]),
    explained("a list with two columns of files", lambda p: listed(p, "file,file\na.png,b.png\n"), says=("two",)),
    explained("a tar without images", lambda p: tar(p, ("a.json", b"{}"), ("a.cls", b"BM")), says=("no images",)),
    Case(
        "explain --bulk of a missing image among others",
        command=lambda p: ["explain", p.run, p.image, p / "nowhere.png", *QUICK, "--bulk", p / "out"],
        says=("nowhere.png",),
        check=one_row,
    ),
    Case(
        "a table of 20,000 columns",
        command=lambda p: [
            *("evaluate", p.run, "--root", p.images, "--data"),
            p.write("t.csv", "file,label" + ",x" * 20_000 + "\nred/1.png,red" + ",1" * 20_000 + "\n"),
        ],
        says=("columns",),
    ),
]  # fmt: skip
GOOD: list[Case] = [
    explained("a list with empty lines before it", lambda p: listed(p, "\n\nfile\nimages/red/1.png\n"), good=True),
    explained(
        "a tar of an image without a suffix, and a Mac's notes",
        lambda p: tar(p, ("a", p.image.read_bytes()), ("._a.png", b"mac")),
        good=True,
        check=one_row,
    ),
]  # fmt: skip

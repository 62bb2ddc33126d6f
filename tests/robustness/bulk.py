"""Very many images: lists and tars that are none, folders that are something else, options that do not go together."""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from protopfaith.explanation.bulk.arrow import pyarrow_module
from tests.robustness.harness import Case, Place, run_program
from tests.robustness.options import QUICK


def bulk(name: str, *options: str, images: Callable[[Place], Any] | None = None, **more: Any) -> Case:
    def arguments(place: Place) -> list[Any]:
        given = place.image if images is None else images(place)
        return ["explain", place.run, given, *QUICK, "--bulk", place / "out", *options]

    return Case(f"explain --bulk: {name}", arguments, **more)


def made(place: Place) -> Path:
    """A data set of one image."""
    run_program(
        place.folder, ["explain", str(place.run), str(place.image), *QUICK, "--bulk", str(place / "out")]
    )
    return place / "out"


def of_data_set(command: str, name: str, damage: Callable[[Path], Any], *options: str, **more: Any) -> Case:
    def arguments(place: Place) -> list[Any]:
        folder = made(place)
        damage(folder)
        image = ["good.png"] if command == "report" else []
        return [command, folder, *image, "--out", place / "page.html", *options]

    return Case(f"{command}: {name}", arguments, **more)


def tar(place: Place, content: bytes, name: str = "x.png") -> Path:
    with tarfile.open(place / "x.tar", "w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return place / "x.tar"


def nothing(folder: Path) -> None:
    """No damage."""


def part(folder: Path) -> Path:
    return next(folder.glob("part-*.parquet"))


def changed(**columns: Any) -> Callable[[Path], None]:
    """A part whose columns are something else, or missing where that is None."""

    def damage(folder: Path) -> None:
        parquet = pyarrow_module("parquet")
        table = parquet.read_table(part(folder))
        for name, values in columns.items():
            place = table.schema.get_field_index(name)
            kind = table.schema.field(place).type if name != "total" else None
            table = table.remove_column(place)
            if values is not None:
                table = table.add_column(place, name, pyarrow_module().array([values], kind))
        parquet.write_table(table, part(folder))

    return damage


def twice(folder: Path) -> None:
    pa, parquet = pyarrow_module(), pyarrow_module("parquet")
    table = parquet.read_table(part(folder))
    parquet.write_table(pa.concat_tables([table, table]), part(folder))


def manifest(**values: Any) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / "_bulk.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **values}))

    return damage


def flipped(folder: Path) -> None:
    """Bits of a stored number, which only a checksum tells."""
    content = bytearray(part(folder).read_bytes())
    content[len(content) // 5] ^= 255
    part(folder).write_bytes(content)


CASES: list[Case] = [
    *(bulk(f"--shard {text!r}", "--shard", text) for text in ("", "0/2", "3/2", "1", "a/b", "1/0", "-1/2", "1/99999999")),
    bulk("--ray without an address", "--ray", ""),
    bulk("--ray and --shard", "--ray", "local", "--shard", "1/2"),
    bulk("--ship without --ray", "--ship"),
    bulk("--out as well", "--out", "elsewhere"),
    bulk("--mask as well", "--mask", "good.png"),
    bulk("--frame as well", "--frame", "2"),
    bulk("--second-baseline as well", "--second-baseline", "blur"),
    bulk("an unknown class", "--class", "zebra"),
    bulk("too small a budget", "--budget", "2"),
    bulk("an empty list", images=lambda p: p.write("x.csv", "")),
    bulk("a list without a column of files", images=lambda p: p.write("x.csv", "a,b\n1,2\n"), says=("file",)),
    bulk("a list of missing files", images=lambda p: p.write("x.csv", "file\nnowhere.png\n"), says=("nowhere.png",)),
    bulk("a list in UTF-16", images=lambda p: p.write("x.csv", "file\ngood.png\n".encode("utf-16"))),
    bulk("a list of NUL", images=lambda p: p.write("x.csv", "file\n\0\n")),
    bulk("a list that is a pipe", images=lambda p: os.mkfifo(p / "x.csv") or p / "x.csv"),
    bulk("a list that is an image", images=lambda p: p.copy("good.png", "x.csv")),
    bulk("a box of texts", images=lambda p: p.write("x.csv", "file,left,top,right,bottom\ngood.png,a,b,c,d\n")),
    bulk("a box from right to left", images=lambda p: p.write("x.csv", "file,left,top,right,bottom\ngood.png,9,1,3,4\n"), says=("box from 9, 1",)),
    bulk("a Parquet list that is none", images=lambda p: p.write("x.parquet", "PAR1")),
    bulk("a Parquet list that is a pipe", images=lambda p: os.mkfifo(p / "x.parquet") or p / "x.parquet"),
    bulk("a tar that is none", images=lambda p: p.write("x.tar", "no tar")),
    bulk("an empty tar", images=lambda p: p.write("x.tar", b"\0" * 10240)),
    bulk("a tar of a broken image", images=lambda p: tar(p, b"no image"), says=("x.png",)),
    bulk("a tar that is cut", images=lambda p: p.write("x.tar", tar(p, b"x" * 5000).read_bytes()[:2000])),
    bulk("a compressed tar", images=lambda p: p.write("x.tar.gz", "x"), says=("tar",)),
    bulk("an empty folder", images=lambda p: (p / "empty").mkdir() or p / "empty"),
    bulk("an image with an infinite box", images=lambda p: [p.image, p.write("x.csv", "file,left,top,right,bottom\ngood.png,0,0,inf,nan\n")][1]),
    Case("explain --bulk into a file", lambda p: ["explain", p.run, p.image, *QUICK, "--bulk", p.image]),
    Case("explain --bulk into a folder of foreign data", lambda p: ["explain", p.run, p.image, *QUICK, "--bulk", p.write("d/x.parquet", "x").parent]),
    Case("explain --shard without --bulk", lambda p: ["explain", p.run, p.image, *QUICK, "--shard", "1/2"], says=("--bulk",)),
    Case("explain --ray without --bulk", lambda p: ["explain", p.run, p.image, *QUICK, "--ray", "local"], says=("--bulk",)),
    Case("explain --bulk with other settings", lambda p: ["explain", p.run, p.image, *QUICK, "--seed", "7", "--bulk", made(p)], says=("other settings",)),
    Case("report of nothing", lambda p: ["report", "nowhere", "x.png"], says=("nowhere",)),
    Case("summarize nothing", lambda p: ["summarize", "nowhere"], says=("nowhere",)),
    Case("report into an image", lambda p: ["report", made(p), "good.png", "--out", p.image]),
    Case("summarize into an image", lambda p: ["summarize", made(p), "--out", p.image]),
    Case("report of another image", lambda p: ["report", made(p), "x.png", "--out", p / "x.html"], says=("x.png",)),
    *(
        of_data_set(command, name, damage)
        for command in ("report", "summarize")
        for name, damage in {
            "a manifest that is empty": lambda f: (f / "_bulk.json").write_text(""),
            "a manifest that is a list": lambda f: (f / "_bulk.json").write_text("[]"),
            "a manifest of wrong kinds": lambda f: (f / "_bulk.json").write_text('{"format": 1, "images": "x"}'),
            "a part that is empty": lambda f: part(f).write_bytes(b""),
            "a part that is cut": lambda f: part(f).write_bytes(part(f).read_bytes()[:500]),
            "no part": lambda f: part(f).unlink(),
            "a part with rows twice": twice,
            "a part without values": changed(values=None),
            "a part of other types": changed(total="x"),
            "values that are no numbers": changed(values=[float("nan")] * 4),
            "too few values": changed(values=[1.0]),
        }.items()
    ),
    of_data_set("report", "a part with flipped bits", flipped, says=("part-000000", "delete it")),
    of_data_set("report", "no settings", manifest(settings={}), says=("out", "damaged")),
    of_data_set("report", "no windows", manifest(window=None), says=("out",)),
    of_data_set("summarize", "a window of one side", manifest(window=[3]), says=("_bulk.json",)),
    Case("explain --bulk goes on with impossible threads", lambda p: [manifest(threads=-1)(made(p)), "explain", p.run, p.image, *QUICK, "--bulk", p / "out"][1:], says=("_bulk.json", "threads")),
    Case("explain --bulk goes on after rows twice", lambda p: [twice(made(p)), "explain", p.run, p.image, *QUICK, "--bulk", p / "out"][1:], says=("part-000000", "delete it")),
    of_data_set("report", "an unknown place", lambda f: (f / "_where.parquet").unlink(), says=("--run",)),
    of_data_set("report", "a damaged place", lambda f: (f / "_where.parquet").write_bytes(b"PAR1")),
    of_data_set("report", "a run that is none", nothing, "--run", "nowhere", says=("nowhere",)),
    of_data_set("report", "an image that is none", nothing, "--image", "nowhere.png", says=("nowhere.png",)),
    of_data_set("summarize", "against nothing", nothing, "--against", "nowhere", says=("nowhere",)),
]  # fmt: skip
GOOD: list[Case] = [
    bulk("a list with a byte order mark and CRLF", images=lambda p: [p.image, p.write("x.csv", "file,note\r\ngood.png,\"a, b\"\r\n".encode("utf-8-sig"))][1], good=True),
    bulk("a tar", images=lambda p: tar(p, p.image.read_bytes()), good=True),
    bulk("the same image twice", images=lambda p: [p.image, p.write("x.csv", "file\ngood.png\ngood.png\n")][1], good=True),
    bulk("a box larger than the image", images=lambda p: [p.image, p.write("x.csv", "file,left,top,right,bottom\ngood.png,-50,-9,1e9,1e9\n")][1], good=True),
    bulk("a name that is no UTF-8", images=lambda p: p.image.rename(os.fsdecode(os.fsencode(p / "a") + b"\xff\xfe.png")), good=True),
    bulk("a box outside the image", images=lambda p: [p.image, p.write("x.csv", "file,left,top,right,bottom\ngood.png,500,500,600,600\n")][1], good=True),
    of_data_set("report", "that is whole", nothing, good=True),
    of_data_set("summarize", "that is whole", nothing, good=True),
]  # fmt: skip

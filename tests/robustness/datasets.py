"""Data sets whose files contradict each other, are missing, or point elsewhere."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.data.dicom_files import write_dicom
from tests.robustness.harness import Case, Place
from tests.robustness.images import GOOD_PNG, picture

Make = Callable[[Path], None]


def prepare(
    what: str, name: str, make: Make, *options: str, good: bool = False, says: tuple[str, ...] = ()
) -> Case:
    def arguments(place: Place) -> list[Any]:
        root = place / "root"
        root.mkdir()
        make(root)
        os.environ["PROTOPFAITH_CACHE"] = str(place / "cache")  # given back by the runner
        return ["data", "prepare", name, "--root", root, "--size", "24", *options]

    return Case(f"data prepare {name}: {what}", arguments, good=good, says=says)


def save(path: Path, number: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    image = picture()
    image.putpixel((0, 0), (number % 256, number // 256, 7))
    image.save(path)


def folder(root: Path) -> None:
    for label, name in enumerate(("cat", "dog")):
        for number in range(10):
            save(root / name / f"{number}.png", 100 * label + number)


def each(*steps: Make) -> Make:
    def make(root: Path) -> None:
        for step in steps:
            step(root)

    return make


def picture_at(name: str, number: int) -> Make:
    return lambda root: save(root / name, number)


def file_instead(name: str) -> Make:
    def make(root: Path) -> None:
        (root / name).rmdir()
        (root / name).write_text("x")

    return make


def folder_instead(name: str) -> Make:
    def make(root: Path) -> None:
        (root / name).unlink()
        (root / name).mkdir()

    return make


def cut_end(name: str, count: int) -> Make:
    def make(root: Path) -> None:
        (root / name).write_bytes((root / name).read_bytes()[:-count])

    return make


def then(first: Make, second: Make) -> Make:
    def make(root: Path) -> None:
        first(root)
        second(root)

    return make


def write(name: str, content: str | bytes) -> Make:
    def make(root: Path) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content.encode() if isinstance(content, str) else content)

    return make


def copy(source: str, target: str) -> Make:
    def make(root: Path) -> None:
        (root / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / source, root / target)

    return make


def delete(name: str) -> Make:
    def make(root: Path) -> None:
        shutil.rmtree(root / name) if (root / name).is_dir() else (root / name).unlink()

    return make


def _split(root: Path) -> None:
    number = 0
    for split in ("train", "validation", "test"):
        for name in ("cat", "dog"):
            for index in range(3):
                save(root / split / name / f"{index}.png", number := number + 1)


def _bytes_name(root: Path) -> None:
    path = os.path.join(os.fsencode(root), b"cat", b"caf\xe9.png")
    shutil.copy(root / "cat" / "0.png", path)
    with open(path, "ab") as file:
        file.write(b"more")


FOLDERS = [
    prepare("empty", "folder", lambda root: None, says=("empty",)),
    prepare("no classes", "folder", write("a.png", GOOD_PNG)),
    prepare("one class", "folder", then(folder, delete("dog")), says=("cat",)),
    prepare("a class with one image", "folder", then(folder, write("owl/0.png", GOOD_PNG)), says=("owl",)),
    prepare("an empty class", "folder", then(folder, lambda root: (root / "owl").mkdir()), says=("owl",)),
    prepare("a broken image", "folder", then(folder, write("cat/0.png", b"x")), says=("0.png",)),
    prepare("a pipe", "folder", then(folder, lambda root: os.mkfifo(root / "cat" / "p.png")), good=True),
    prepare("a dangling link", "folder", then(folder, lambda root: os.symlink("x", root / "cat" / "l.png")), says=("l.png",)),
    prepare("a picture in two classes", "folder", then(folder, copy("cat/0.png", "dog/copy.png")), says=("0.png", "copy.png")),
    prepare("a copy in one class", "folder", then(folder, copy("cat/0.png", "cat/copy.png")), good=True),
    prepare(
        "a picture in training and test",
        "folder",
        each(_split, copy("train/cat/0.png", "test/cat/9.png")),
        says=("0.png",),
    ),
    prepare("two validation folders", "folder", each(_split, picture_at("val/cat/0.png", 900), picture_at("valid/cat/0.png", 901))),
    prepare("a class in test alone", "folder", each(_split, picture_at("test/owl/0.png", 902), picture_at("test/owl/1.png", 903)), says=("owl",)),
    prepare("a file as root", "folder", file_instead(".")),
    prepare("names that are hard", "folder", each(folder, *(picture_at(f"$\\frac{{$/{n}.png", 300 + n) for n in range(4))), good=True),
    prepare("names that are not UTF-8", "folder", each(folder, _bytes_name), good=True),
    prepare("skipped", "folder", then(folder, write("cat/0.png", b"x")), "--skip-unreadable", good=True),
]  # fmt: skip


def cub(root: Path) -> None:
    lines: dict[str, list[str]] = {
        name: [] for name in ("images", "image_class_labels", "train_test_split", "bounding_boxes")
    }
    number = 0
    for label, name in enumerate(("001.Cat", "002.Dog"), start=1):
        for index in range(8):
            number += 1
            save(root / "images" / name / f"{index}.png", number)
            lines["images"].append(f"{number} {name}/{index}.png")
            lines["image_class_labels"].append(f"{number} {label}")
            lines["train_test_split"].append(f"{number} {int(index > 2)}")
            lines["bounding_boxes"].append(f"{number} 1.0 2.0 10.0 10.0")
    for table, rows in lines.items():
        (root / f"{table}.txt").write_text("\n".join(rows) + "\n")
    (root / "classes.txt").write_text("1 001.Cat\n2 002.Dog\n")


def line(table: str, old: str, new: str) -> Make:
    def make(root: Path) -> None:
        path = root / f"{table}.txt"
        content = path.read_text()
        assert old in content
        path.write_text(content.replace(old, new, 1))

    return make


CUBS = [
    prepare("whole", "cub", cub, good=True),
    prepare("a path outside", "cub", then(cub, line("images", "1 001.Cat/0.png", "1 ../../outside.png")), says=("outside",)),
    prepare("an absolute path", "cub", then(cub, line("images", "1 001.Cat/0.png", "1 /etc/hostname")), says=("hostname",)),
    prepare("a number twice", "cub", then(cub, line("images", "2 001.Cat/1.png", "1 001.Cat/1.png")), says=("images.txt",)),
    prepare("a file twice", "cub", then(cub, line("images", "2 001.Cat/1.png", "2 001.Cat/0.png")), says=("images.txt",)),
    prepare("split value 7", "cub", then(cub, line("train_test_split", "1 0", "1 7")), says=("train_test_split.txt", "7")),
    prepare("split value x", "cub", then(cub, line("train_test_split", "1 0", "1 x")), says=("train_test_split.txt",)),
    prepare("an unknown class", "cub", then(cub, line("image_class_labels", "1 1", "1 9")), says=("9",)),
    prepare("a class name twice", "cub", then(cub, line("classes", "2 002.Dog", "2 001.Cat"))),
    prepare("a line cut off", "cub", then(cub, line("images", "1 001.Cat/0.png", "1")), says=("images.txt",)),
    prepare("an image missing", "cub", then(cub, delete("images/001.Cat/0.png")), says=("0.png",)),
    prepare("an empty table", "cub", then(cub, write("classes.txt", "")), says=("classes.txt",)),
    prepare("a table that is not UTF-8", "cub", then(cub, write("classes.txt", b"1 \xff\n2 \xfe\n")), says=("classes.txt",)),
    prepare("boxes that are texts", "cub", then(cub, line("bounding_boxes", "1 1.0 2.0", "1 x y")), says=("bounding_boxes.txt",)),
    prepare("boxes that are NaN", "cub", then(cub, line("bounding_boxes", "1 1.0 2.0 10.0 10.0", "1 nan nan nan nan")), says=("bounding_boxes.txt",)),
    prepare("boxes that are infinite", "cub", then(cub, line("bounding_boxes", "1 1.0 2.0 10.0 10.0", "1 0 0 inf inf")), says=("bounding_boxes.txt",)),
    prepare("a table missing", "cub", then(cub, delete("train_test_split.txt")), says=("train_test_split.txt",)),
    prepare("a folder as table", "cub", each(cub, folder_instead("classes.txt"))),
    prepare("contradicting labels, which are told", "cub", then(cub, copy("images/001.Cat/5.png", "images/002.Dog/5.png")), good=True),
    prepare("parts without names", "cub", then(cub, then(write("parts/parts.txt", ""), write("parts/part_locs.txt", "1 1 x y z\n")))),
]  # fmt: skip


def rsna(root: Path) -> None:
    rows = ["file,label,patient,age,sex"]
    for number in range(24):
        save(root / f"{number}.png", number)
        rows.append(f"{number}.png,{'normal' if number % 2 else 'lung_opacity'},p{number},{30 + number},M")
    (root / "labels.csv").write_text("\n".join(rows) + "\n")


def labels(old: str, new: str) -> Make:
    def make(root: Path) -> None:
        path = root / "labels.csv"
        content = path.read_text()
        assert old in content
        path.write_text(content.replace(old, new, 1))

    return make


RSNA = [
    prepare("whole", "rsna", rsna, good=True),
    prepare("a path outside", "rsna", then(rsna, labels("0.png,", "../../x.png,")), says=("x.png",)),
    prepare("an absolute path", "rsna", then(rsna, labels("0.png,", "/etc/hostname,")), says=("hostname",)),
    prepare("an unknown label", "rsna", then(rsna, labels("normal", "abnormal")), says=("abnormal",)),
    prepare("one file with two labels", "rsna", then(rsna, labels("1.png,normal,p1,31,M", "1.png,normal,p1,31,M\n1.png,lung_opacity,p1,31,M")), says=("1.png",)),
    prepare("a row twice", "rsna", then(rsna, labels("1.png,normal,p1,31,M", "1.png,normal,p1,31,M\n1.png,normal,p1,31,M")), says=("1.png",)),
    prepare("no file column", "rsna", then(rsna, labels("file,", "name,")), says=("file",)),
    prepare("no rows", "rsna", then(rsna, write("labels.csv", "file,label\n")), says=("labels.csv",)),
    prepare("an empty table", "rsna", then(rsna, write("labels.csv", "")), says=("labels.csv",)),
    prepare("a table that is not UTF-8", "rsna", then(rsna, write("labels.csv", b"file,label\n\xff,normal\n")), says=("labels.csv",)),
    prepare("a table with NUL", "rsna", then(rsna, write("labels.csv", b"file,label\n\0,normal\n"))),
    prepare("an image as table", "rsna", then(rsna, write("labels.csv", GOOD_PNG)), says=("labels.csv",)),
    prepare("ragged rows", "rsna", then(rsna, write("labels.csv", "file,label\n0.png,normal,x,y,z\n")), says=("labels.csv",)),
    prepare("a missing file", "rsna", then(rsna, labels("0.png,", "99.png,")), says=("99.png",)),
    prepare("an empty file name", "rsna", then(rsna, labels("0.png,", ","))),
    prepare("one class alone", "rsna", then(rsna, write("labels.csv", "file,label\n" + "".join(f"{n}.png,normal\n" for n in range(24))))),
    prepare("a picture in two classes", "rsna", then(rsna, copy("0.png", "1.png")), says=("0.png", "1.png")),
    prepare("strange ages", "rsna", then(rsna, labels(",31,M", ",minus three,M")), good=True),
]  # fmt: skip


def dicom(root: Path) -> None:
    rsna(root)
    content = (root / "labels.csv").read_text()
    import numpy as np

    pixels = np.random.default_rng(0).integers(0, 255, (20, 20), dtype=np.uint8)
    write_dicom(root / "0.dcm", pixels)
    (root / "labels.csv").write_text(content.replace("0.png,", "0.dcm,", 1))


DICOM = [
    prepare("a DICOM file", "rsna", dicom, good=True),
    prepare("an empty DICOM file", "rsna", then(dicom, write("0.dcm", b"")), says=("0.dcm",)),
    prepare("a text as DICOM file", "rsna", then(dicom, write("0.dcm", b"hello" * 100)), says=("0.dcm",)),
    prepare("a DICOM preamble alone", "rsna", then(dicom, write("0.dcm", bytes(128) + b"DICM")), says=("0.dcm",)),
    prepare("a cut DICOM file", "rsna", then(dicom, cut_end("0.dcm", 100)), says=("0.dcm",)),
]  # fmt: skip


def dogs(root: Path) -> None:
    (root / "Images").mkdir()
    for name in ("train_list.mat", "test_list.mat"):
        (root / name).write_bytes(b"MATLAB 5.0 MAT-file" + bytes(200))


DOGS = [
    prepare("empty", "dogs", lambda root: None),
    prepare("lists that are no lists", "dogs", dogs, says=("train_list.mat",)),
    prepare(
        "lists that are texts", "dogs", then(dogs, write("train_list.mat", "x")), says=("train_list.mat",)
    ),
]


def judged(what: str, table: bytes | str, *, good: bool = False, says: tuple[str, ...] = ()) -> Case:
    """A CSV file of images from elsewhere, beside the images of the template."""

    def arguments(place: Place) -> list[Any]:
        (place.images / "list.csv").write_bytes(table.encode() if isinstance(table, str) else table)
        options = ["--resamples", "20", "--no-compare", "--device", "cpu"]
        return ["evaluate", place.run, "--data", place.images / "list.csv", *options]

    return Case(f"evaluate --data: {what}", arguments, good=good, says=says)


ELSEWHERE = [
    judged("an empty table", "", says=("list.csv",)),
    judged("headings alone", "file,label\n", says=("list.csv",)),
    judged("no label", "file\nblue/0.png\n", says=("label",)),
    judged("a path outside", "file,label\n../../x.png,blue\n", says=("x.png",)),
    judged("an absolute path", "file,label\n/etc/hostname,blue\n", says=("hostname",)),
    judged("no such file", "file,label\nnowhere.png,blue\n", says=("nowhere.png",)),
    judged("unknown classes", "file,label\nblue/0.png,violet\n", says=("violet",)),
    judged("a table that is not UTF-8", b"file,label\n\xff,blue\n", says=("list.csv",)),
    judged("a table with NUL", b"file,label\n\0,blue\n"),
    judged("ragged rows", "file,label\nblue/0.png,blue,x\n", says=("list.csv",)),
    judged("a file twice", "file,label\nblue/0.png,blue\nblue/0.png,green\n", says=("blue/0.png",)),
    judged("a folder as file", "file,label\nblue,blue\n", says=("blue",)),
    judged("an image as table", GOOD_PNG, says=("list.csv",)),
]

ALL = (*FOLDERS, *CUBS, *RSNA, *DICOM, *DOGS, *ELSEWHERE)
CASES = [case for case in ALL if not case.good]
GOOD = [case for case in ALL if case.good]

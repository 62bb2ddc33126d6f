"""Files that are no network, and options of `convert` that make no sense."""

from __future__ import annotations

import os
import pickle
from typing import Any

from tests.robustness.harness import Case, Place


class Smuggled:
    """Calls something when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("touch smuggled",)


def untouched(place: Place) -> None:
    assert not (place / "new").exists(), "a run folder was left"
    assert not (place / "smuggled").exists(), "a file ran something"


def on_bytes(name: str, content: bytes, *options: str) -> Case:
    def command(place: Place) -> list[object]:
        return ["convert", place.write("model.pth", content), "--out", "new", *options]

    return Case(f"convert {name} {' '.join(options)}", command, check=untouched)


def on_folder(name: str, files: dict[str, str]) -> Case:
    def command(place: Place) -> list[object]:
        (place / "net").mkdir()
        for file, content in files.items():
            place.write(f"net/{file}", content)
        return ["convert", "net", "--out", "new"]

    return Case(f"convert folder with {name}", command, check=untouched)


def on_model(*options: str) -> Case:
    """A real checkpoint, but one of another kind: a run of ours."""

    def command(place: Place) -> list[object]:
        return ["convert", place.run / "model.safetensors", "--out", "new", *options]

    return Case(f"convert our own model {' '.join(options)}", command, check=untouched)


def missing(*arguments: str) -> Case:
    return Case(f"convert {' '.join(arguments)}", lambda place: ["convert", *arguments], check=untouched)


CASES = [
    missing("y" * 300, "--out", "new"),
    Case(
        "train into a folder whose name is no text",
        lambda place: ["train", place.copy("tiny.yaml"), "--root", place.images, "--out", b"\xff\xfe"],
        says=("UTF-8", "choose another"),
    ),
    on_bytes("nothing", b""),
    on_bytes("text", b"this is no network\n"),
    on_bytes("zeros", bytes(4096)),
    on_bytes("a zip archive's beginning", b"PK\x03\x04" + bytes(100)),
    on_bytes("a pickle of numbers", pickle.dumps({"a": 1})),
    on_bytes("a smuggled call", pickle.dumps(Smuggled(), protocol=2)),
    on_bytes("endless nesting", b"\x80\x02" + b"]" * 5000 + b"a" * 4999 + b"."),
    on_bytes("a pickle", pickle.dumps(1), "--format", "cabrnet"),
    *(on_bytes("a pickle", pickle.dumps(1), "--format", value) for value in ("", "onnx", "ProtoPNet")),
    *(on_bytes("a pickle", pickle.dumps(1), "--size", value) for value in ("0", "-1", "x", "1e9")),
    *(on_bytes("a pickle", pickle.dumps(1), "--epsilon", value) for value in ("-1", "2", "nan", "x")),
    *(on_bytes("a pickle", pickle.dumps(1), option, "nothing") for option in ("--root", "--data", "--boxes")),
    on_model(),
    on_model("--similarity", "cosine"),
    on_folder("nothing", {}),
    on_folder("an empty description", {"model_arch.yml": ""}),
    on_folder("a list", {"model_arch.yml": "- 1\n"}),
    on_folder("broken YAML", {"model_arch.yml": "a: [1"}),
    on_folder("another classifier", {"model_arch.yml": "classifier: {name: PIPNetClassifier}\n"}),
    on_folder(
        "no tensors",
        {"model_arch.yml": "classifier: {name: ProtoPNetClassifier}\n", "model_state.pth": "no"},
    ),
    missing("nothing.pth", "--out", "new"),
    missing("--out", "new"),
    missing("nothing.pth"),
]

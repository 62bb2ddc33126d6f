"""Recipes, overrides and search spaces that are wrong."""

from __future__ import annotations

import dataclasses
import typing

from protopfaith.training import Recipe
from tests.robustness.harness import Case, Place


def no_folder(place: Place) -> None:
    assert not (place / "new").exists(), "a run folder was left that blocks the next try"


def recipe(name: str, content: bytes | str, *, good: bool = False, says: tuple[str, ...] = ()) -> Case:
    def command(place: Place) -> list[object]:
        place.write("bad.yaml", content)
        return ["train", "bad.yaml", "--root", place.images, "--out", "new"]

    return Case(f"recipe: {name}", command, says=says, check=no_folder, good=good)


def override(*texts: str, says: tuple[str, ...] = ()) -> Case:
    def command(place: Place) -> list[object]:
        place.copy("tiny.yaml")
        return ["train", "tiny.yaml", *texts, "--root", place.images, "--out", "new"]

    return Case(f"override: {' '.join(texts)[:80]}", command, says=says, check=no_folder)


def grid(name: str, content: str) -> Case:
    def command(place: Place) -> list[object]:
        place.copy("tiny.yaml")
        place.write("grid.yaml", content)
        return ["train", "--grid", "grid.yaml", "--root", place.images, "--out", "new"]

    return Case(f"grid: {name}", command, check=no_folder)


LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)
)

WRITTEN = [
    recipe("billion laughs", LAUGHS + "seed: *j\n"),
    recipe("billion laughs as a section", LAUGHS + "model: *j\n"),
    recipe("billion laughs as text", LAUGHS + "data:\n  name: *j\n"),
    recipe("deep brackets", "seed: " + "[" * 50_000),
    recipe("deep brackets, closed", "seed: " + "[" * 3_000 + "]" * 3_000),
    recipe("deep mappings", "".join(" " * i + "a:\n" for i in range(2_000))),
    recipe("recursive", "seed: &a [*a]\n"),
    recipe("recursive mapping", "model: &a\n  encoder: *a\n"),
    recipe("a key twice", "seed: 1\nseed: 2\n", says=("seed",)),
    recipe("a nested key twice", "model:\n  encoder: small\n  encoder: resnet\n", says=("encoder",)),
    recipe("an octal number", "seed: 010\n", says=("seed",)),
    recipe("a date", "seed: 2020-01-01\n", says=("seed",)),
    recipe("a time", "seed: 12:30:45\n", says=("seed",)),
    recipe("an int tag on text", "seed: !!int abc\n"),
    recipe("a float tag on text", "optimization:\n  learning_rate: !!float abc\n"),
    recipe("a python object", "seed: !!python/object/apply:os.system ['true']\n"),
    recipe("an unknown tag", "seed: !mine 3\n"),
    recipe("a binary", "seed: !!binary aGFsbG8=\n"),
    recipe("bad base64", "seed: !!binary '***'\n"),
    recipe("a set", "data: !!set {a, b}\n"),
    recipe("not UTF-8", b"seed: \xff\xfe\n"),
    recipe("NUL bytes", b"seed: 1\0\n"),
    recipe("UTF-16", "seed: 1\n".encode("utf-16")),
    recipe("a list", "- a\n- b\n"),
    recipe("a text", "hello"),
    recipe("a number", "3"),
    recipe("unbalanced", "model: {encoder: small\n"),
    recipe("tabs", "model:\n\tencoder: small\n"),
    recipe("two documents", "seed: 1\n---\nseed: 2\n"),
    recipe("an undefined alias", "seed: *nothing\n"),
    recipe("a number as a key", "1: 2\n"),
    recipe("a list as a key", "[1, 2]: 2\n"),
    recipe("a mapping as a key", "{a: 1}: 2\n"),
    recipe("null as a key", "null: 2\n"),
    recipe("a huge integer", "seed: " + "9" * 10_000 + "\n"),
    recipe("a huge hexadecimal", "seed: 0x" + "f" * 5_000 + "\n"),
    recipe("sexagesimal", "seed: " + "1:" * 3_000 + "1\n"),
    recipe("merge of no mapping", "model:\n  <<: 3\n"),
    recipe("an image", b"\x89PNG\r\n\x1a\n" + bytes(range(256))),
    recipe("an unknown key", "sede: 3\n", says=("did you mean 'seed'",)),
    recipe("an unknown nested key", "model:\n  encodr: small\n", says=("did you mean 'encoder'",)),
    recipe(
        "an unknown encoder", "data: {name: folder}\nmodel:\n  encoder: resnet5O\n", says=("did you mean",)
    ),
    recipe("a section that is a value", "model: small\n", says=("model",)),
    recipe("a section that is null", "model: null\n", says=("model",)),
    recipe("a long text", "data:\n  name: " + "x" * 100_000 + "\n"),
    recipe("a million keys", "".join(f"k{i}: 1\n" for i in range(30_000))),
]

WRONG = {
    bool: ("3", "maybe", "[1]", "null"),
    int: ("x", "1.5", "[1]", "true", ".nan", "1" + "0" * 30),
    float: ("x", ".nan", ".inf", "-.inf", "[1]", "true", "null", "1e400"),
    str: ("[1]", "{a: 1}", "3", "null"),
    dict: ("3", "[1]", "x"),
}


def fields(kind: type, prefix: str = "") -> list[tuple[str, typing.Any]]:
    """Every value of the recipe by its dotted key, with its type."""
    found = []
    hints = typing.get_type_hints(kind)
    for field in dataclasses.fields(kind):
        inner = hints[field.name]
        if dataclasses.is_dataclass(inner):
            found += fields(inner, f"{prefix}{field.name}.")  # type: ignore[arg-type]
        else:
            found.append((f"{prefix}{field.name}", inner))
    return found


def nested(key: str, text: str) -> str:
    *sections, last = key.split(".")
    if key.startswith("data.") and last != "name":
        return f"data:\n  name: folder\n  {last}: {text}\n"
    folder = "" if key.startswith("data.") else "data: {name: folder}\n"
    lines = [f"{'  ' * depth}{section}:" for depth, section in enumerate(sections)]
    return folder + "\n".join([*lines, f"{'  ' * len(sections)}{last}: {text}", ""])


TYPED = [
    recipe(f"{key}: {text[:12]}", nested(key, text), says=(key.split(".")[-1],))
    for key, kind in fields(Recipe)
    for text in WRONG.get(kind, ())
]

OVERRIDES = [
    override("x"),
    override("=3"),
    override("seed="),
    override("seed=="),
    override(".seed=3"),
    override("seed.x=3"),
    override("model..encoder=small"),
    override("model=small"),
    override("seed=[1,"),
    override("seed={a: 1}"),
    override("seed=" + "[" * 5000),
    override("data.options={nothing: 3}", says=("nothing",)),
    override("data.options={channels: 7}"),
    override("data.options={channels: x}"),
    override("data.size=[4,4]"),
    override("data.size=24", says=("[24, 24]",)),
    override("data.size=[24,24,24]"),
    override("data.size=[-24,24]"),
    override("data.size=[1000000,1000000]"),
    override("data.fold=9"),
    override("data.fold=-1"),
    override("data.fold=x"),
    override("data.seed=1" + "0" * 40),
    override("data.name=nothing", says=("nothing",)),
    override("model.encoder=nothing", says=("nothing",)),
    override("model.encoder=timm:nothing"),
    override("model.encoder=timm:"),
    override("model.encoder=../x"),
    override("model.activation=nothing"),
    override("model.similarity=nothing"),
    override("model.initialization=nothing"),
    override("model.prototypes_per_class=0"),
    override("model.prototypes_per_class=1000000000"),
    override("model.prototype_channels=1000000000"),
    override("model.encoder=densenet121", "data.size=[8,8]"),
    override("model.weights=imagenet"),
    override("optimization.batch_size=0"),
    override("model.encoder=resnet18", "optimization.batch_size=1", says=("batch",)),
    override("optimization.learning_rate=0"),
    override("optimization.learning_rate=1e300"),
    override("optimization.weight_decay=-1"),
    override("optimization.clip=-1"),
    override("optimization.layer_decay=0"),
    override("schedule.lost_cycle=maybe", says=("go_back",)),
    override("schedule.images=0"),
    override("schedule.pretraining.probe=maybe"),
    override("model.logit_scale=3"),
    override("optimization.clip=.nan"),
    override("costs.cluster=.nan"),
    override("costs.label_smoothing=2"),
    override("augmentation.scale=[0,1]"),
    override("augmentation.scale=[2,1]"),
    override("augmentation.rotation=1e300"),
    override("augmentation.translation=5"),
    override("augmentation.size=[2,2]"),
    override("augmentation.size=[100000,100000]"),
    override("augmentation.color=-1"),
    override("augmentation.padding=nothing"),
    override("schedule.cycles=0"),
    override("schedule.cycles=1" + "0" * 12),
    override("schedule.joint.epochs=1" + "0" * 12),
    override("schedule.warmup.start=2"),
    override("schedule.patience=0"),
    override("compute.accelerator=tpu"),
    override("compute.accelerator=nothing"),
    override("compute.devices=0"),
    override("compute.devices=-3"),
    override("compute.devices=x"),
    override("compute.num_nodes=2"),
    override("compute.strategy=nothing"),
    override("compute.precision=8-true"),
    override("compute.workers=-1"),
    override("compute.workers=100000"),
    override("model.initialization=evidence", "schedule.pretraining.epochs=0"),
    override("costs.companion=1", "schedule.pretraining.epochs=0"),
]

GRIDS = [
    grid("empty", ""),
    grid("without a recipe", "search: {seed: [1, 2]}\n"),
    grid("an unknown recipe", "recipe: nothing\nsearch: {seed: [1]}\n"),
    grid("an unknown key", "recipe: tiny.yaml\nsearch: {sede: [1]}\n"),
    grid("a value instead of a list", "recipe: tiny.yaml\nsearch: {seed: 1}\n"),
    grid("an empty list", "recipe: tiny.yaml\nsearch: {seed: []}\n"),
    grid("a wrong value at the end", "recipe: tiny.yaml\nsearch: {seed: [1, x]}\n"),
    grid("no search", "recipe: tiny.yaml\nsearch: 3\n"),
    grid("a key that is no text", "recipe: tiny.yaml\nsearch: {1: [1]}\n"),
    grid("a wrong encoder at the end", "recipe: tiny.yaml\nsearch: {model.encoder: [small, nothing]}\n"),
    grid("ten billion points", "recipe: tiny.yaml\nsearch:\n" + "".join(
        f"  {key}: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n"
        for key in (
            "seed", "data.seed", "schedule.cycles", "schedule.joint.epochs", "schedule.warmup.epochs",
            "model.prototypes_per_class", "model.prototype_channels", "optimization.batch_size",
            "schedule.classifier.epochs", "schedule.joint.rate_cycles",
        )
    )),
    grid("billion laughs", LAUGHS + "recipe: tiny.yaml\nsearch: {seed: *j}\n"),
]  # fmt: skip

CASES = [*WRITTEN, *TYPED, *OVERRIDES, *GRIDS]

GOOD = [
    Case(
        "recipe: a plain one with a byte order mark",
        lambda place: [
            "train",
            place.write("bom.yaml", b"\xef\xbb\xbf" + (place.template / "tiny.yaml").read_bytes()),
            "--root",
            place.images,
            "--out",
            "new",
        ],
        good=True,
    ),
    Case(
        "recipe: anchors and merge keys",
        lambda place: [
            "train",
            place.write(
                "merged.yaml",
                (place.template / "tiny.yaml").read_text()
                + "augmentation: {scale: &range [0.9, 1.1]}\nprojection:\n  <<: {distinct: true}\n",
            ),
            "--root",
            place.images,
            "--out",
            "new",
        ],
        good=True,
    ),
]

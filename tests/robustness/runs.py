"""Run folders that are damaged, incomplete, or not what they say."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors import safe_open
from safetensors.torch import save_file

from tests.robustness.harness import Case, Place
from tests.robustness.options import FAITHFUL, QUICK

M, L = "model.safetensors", "last.safetensors"
Damage = Callable[[Place], None]
COMMANDS: dict[str, Callable[[Place], list[Any]]] = {
    "predict": lambda place: ["predict", place.run, place.image, "--device", "cpu"],
    "explain": lambda place: ["explain", place.run, place.image, *QUICK],
    "evaluate": lambda place: ["evaluate", place.run, "--root", place.images, "--device", "cpu"],
    "prune": lambda place: [
        "prune",
        place.run,
        "--root",
        place.images,
        "--prototypes",
        "0",
        "--device",
        "cpu",
    ],
    "prototypes": lambda place: [
        "prototypes",
        place.run,
        "--root",
        place.images,
        *QUICK[:4],
        "--device",
        "cpu",
    ],
    "faithfulness": lambda place: [
        "faithfulness",
        place.run,
        "--root",
        place.images,
        "--explainers",
        "owen,random",
        *FAITHFUL,
    ],
    "resume": lambda place: ["train", "--resume", "--out", place.run, "--root", place.images],
}


def damaged(
    what: str, damage: Damage, *commands: str, good: bool = False, says: tuple[str, ...] = ()
) -> list[Case]:
    def case(command: str) -> Case:
        def arguments(place: Place) -> list[Any]:
            place.run  # noqa: B018  (copied now)
            damage(place)
            return COMMANDS[command](place)

        return Case(f"{command} on a run: {what}", arguments, good=good, says=says)

    return [case(command) for command in commands]


def replace(name: str, content: bytes | str) -> Damage:
    return lambda place: void(place.write(f"run/{name}", content))


def void(_: object) -> None: ...


def pipe(name: str) -> Damage:
    """A pipe that nobody writes to, where a file is expected: whoever opens it waits forever."""

    def damage(place: Place) -> None:
        (place / "run" / name).unlink(missing_ok=True)
        os.mkfifo(place / "run" / name)

    return damage


def kept_reference(**values: Any) -> Damage:
    """A run that was measured, with other values in what was found."""

    def damage(place: Place) -> None:
        from protopfaith.training import Run
        from protopfaith.training.reference_measurement import keep_reference

        run = Run(place.run)
        keep_reference(run, run.data(), run.model())
        path = run.folder / "reference.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return damage


def grow(name: str) -> Damage:
    """Gigabytes of nothing at its end, which take no room on the disk."""
    return lambda place: os.truncate(place / "run" / name, 8 << 30)


def remove(name: str) -> Damage:
    return lambda place: (place / "run" / name).unlink()


def cut(name: str, share: float) -> Damage:
    def damage(place: Place) -> None:
        path = place / "run" / name
        content = path.read_bytes()
        path.write_bytes(content[: int(share * len(content))])

    return damage


def flip(name: str, share: float) -> Damage:
    def damage(place: Place) -> None:
        path = place / "run" / name
        content = bytearray(path.read_bytes())
        content[int(share * (len(content) - 1))] ^= 0x40
        path.write_bytes(content)

    return damage


def folder_instead(name: str) -> Damage:
    def damage(place: Place) -> None:
        (place / "run" / name).unlink()
        (place / "run" / name).mkdir()

    return damage


def file_instead_of_run(place: Place) -> None:
    (place / "run").rename(place / "away")
    place.write("run", "x")


def pipe_instead(name: str) -> Damage:
    def damage(place: Place) -> None:
        (place / "run" / name).unlink()
        os.mkfifo(place / "run" / name)

    return damage


def header(
    path: Path, key: str, change: Callable[[dict[str, Any]], Any], keep_checksum: bool = False
) -> None:
    """The same tensors under a header that somebody changed (who also knows to leave out the checksum)."""
    with safe_open(path, "pt") as file:
        metadata = dict(file.metadata())
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    values = json.loads(metadata[key])
    changed = change(values)
    metadata = {key: json.dumps(values if changed is None else changed)}
    save_file(tensors, path, metadata=metadata)


def model_header(change: Callable[[dict[str, Any]], Any]) -> Damage:
    return lambda place: header(place / "run" / "model.safetensors", "protopfaith", change)


def last_header(change: Callable[[dict[str, Any]], Any]) -> Damage:
    return lambda place: header(place / "run" / "last.safetensors", "protopfaith-training", change)


def tensors(name: str, key: str, change: Callable[[dict[str, torch.Tensor]], None]) -> Damage:
    def damage(place: Place) -> None:
        path = place / "run" / name
        with safe_open(path, "pt") as file:
            metadata = {key: file.metadata()[key]}
            found = {one: file.get_tensor(one) for one in file.keys()}  # noqa: SIM118
        change(found)
        save_file(found, path, metadata=metadata)

    return damage


def put(*keys: str | int, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(values: dict[str, Any]) -> None:
        inner: Any = values
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = value

    return change


def drop(*keys: str) -> Callable[[dict[str, Any]], None]:
    def change(values: dict[str, Any]) -> None:
        inner: Any = values
        for key in keys[:-1]:
            inner = inner[key]
        del inner[keys[-1]]

    return change


def environment(change: Callable[[dict[str, Any]], Any]) -> Damage:
    def damage(place: Place) -> None:
        path = place / "run" / "environment.json"
        values = json.loads(path.read_text())
        changed = change(values)
        path.write_text(json.dumps(values if changed is None else changed))

    return damage


def run_recipe(change: Callable[[dict[str, Any]], Any]) -> Damage:
    def damage(place: Place) -> None:
        path = place / "run" / "recipe.yaml"
        values = yaml.safe_load(path.read_text())
        changed = change(values)
        path.write_text(yaml.safe_dump(values if changed is None else changed))

    return damage


def unfinished(place: Place) -> None:
    """A run in the middle of its training, as after a kill."""

    def change(values: dict[str, Any]) -> None:
        values["position"] |= {"finished": False, "stage": 1, "epoch": 0}
        values["groups"], values["scheduler"] = [], {}

    last_header(change)(place)


def late(place: Place) -> None:
    """A run within its last stage, whose optimizer has already made steps."""
    last_header(lambda v: v["position"].update(finished=False, stage=3, epoch=1))(place)


def metrics_rows(change: Callable[[list[str]], list[str]]) -> Damage:
    def damage(place: Place) -> None:
        path = place / "run" / "metrics.csv"
        path.write_text("".join(change(path.read_text().splitlines(keepends=True))))

    return damage


TENSORS: dict[str, Callable[[torch.Tensor], torch.Tensor | None]] = {
    "is missing": lambda t: None,
    "is flat": lambda t: t.reshape(-1)[:1].clone() if t.dim() else t[None],
    "is empty": lambda t: t.new_zeros(0),
    "is NaN": lambda t: t.double() * float("nan"),
    "is infinite": lambda t: t.float() + float("inf"),
    "is of whole numbers": lambda t: t.long() if t.is_floating_point() else t.int(),
    "is of half precision": lambda t: t.half(),
    "is of truth values": lambda t: t > 0,
}
"""What somebody may have made of one tensor."""


def one_tensor(end: str, change: Callable[[torch.Tensor], torch.Tensor | None]) -> Damage:
    """Another tensor in place of the first one whose name ends with `end`, in the checkpoint of a training."""

    def damage(found: dict[str, torch.Tensor]) -> None:
        name = next(name for name in sorted(found) if name.endswith(end))
        tensor = change(found.pop(name))
        if tensor is not None:
            found[name] = tensor

    return after(late, tensors(L, "protopfaith-training", damage))


def after(first: Damage, second: Damage) -> Damage:
    def damage(place: Place) -> None:
        first(place)
        second(place)

    return damage


READS_MODEL = ("predict", "explain")
CASES = [
    *damaged("no model", remove(M), *sorted(COMMANDS.keys() - {"resume"}), says=("model",)),
    *damaged("an empty model", replace(M, b""), *READS_MODEL, "evaluate", says=(M,)),
    *damaged("a text as model", replace(M, "hello"), *READS_MODEL, "prune", says=(M,)),
    *damaged("a pickle as model", replace(M, b"\x80\x04cposix\nsystem\n(S'true'\ntR."), *READS_MODEL),
    *damaged("a folder as model", folder_instead(M), *READS_MODEL),
    *damaged("a pipe as model", pipe_instead(M), "predict"),
    *(
        case
        for share in (0.001, 0.1, 0.5, 0.9, 0.9999)
        for case in damaged(f"model cut at {share}", cut(M, share), "predict")
    ),
    *(
        case
        for share in (0.0, 0.001, 0.3, 0.6, 1.0)
        for case in damaged(f"model flipped at {share}", flip(M, share), "predict")
    ),
    *(
        case
        for name, change in {
            "weights of a path": put("architecture", "weights", value="/etc/hostname"),
            "published weights": put("architecture", "weights", value="imagenet"),
            "an unknown key": put("architecture", "unheard", value=1),
            "an unknown encoder": put("architecture", "encoder", value="resnet5O"),
            "an encoder that is a path": put("architecture", "encoder", value="../../x"),
            "an encoder that is a number": put("architecture", "encoder", value=7),
            "an encoder that is a list": put("architecture", "encoder", value=["small"]),
            "no encoder": drop("architecture", "encoder"),
            "a giant encoder": put("architecture", "encoder", value="vit_h_14"),
            "another encoder": put("architecture", "encoder", value="resnet18"),
            "a billion classes": put("architecture", "classes", value=10**9),
            "classes that are numbers": put("architecture", "classes", value=[1, 2, 3]),
            "no classes": drop("architecture", "classes"),
            "a class twice": put("architecture", "classes", value=["a", "a", "b"]),
            "one class too few": put("architecture", "classes", value=["a", "b"]),
            "classes that are null": put("architecture", "classes", value=None),
            "negative prototypes": put("architecture", "prototypes_per_class", value=-1),
            "a billion prototypes": put("architecture", "prototypes_per_class", value=10**9),
            "prototypes that are a text": put("architecture", "prototypes_per_class", value="x"),
            "prototypes that are a list of texts": put("architecture", "prototypes_per_class", value=["x"]),
            "a billion channels": put("architecture", "prototype_channels", value=10**9),
            "channels that are a text": put("architecture", "prototype_channels", value="8"),
            "no channels": put("architecture", "prototype_channels", value=0),
            "in_channels of 10^9": put("architecture", "in_channels", value=10**9),
            "in_channels that are null": put("architecture", "in_channels", value=None),
            "another activation": put("architecture", "activation", value="nothing"),
            "an activation that is a number": put("architecture", "activation", value=3),
            "another similarity": put("architecture", "similarity", value="nothing"),
            "no architecture": drop("architecture"),
            "an architecture that is a list": put("architecture", value=[1]),
            "no sources": drop("sources"),
            "sources that are a text": put("sources", value="x"),
            "too few sources": put("sources", value=[]),
            "sources of a wrong kind": put("sources", 0, value=3),
            "sources without keys": put("sources", 0, value={"image": "x"}),
            "sources with more keys": put(
                "sources", 0, value={"image": "x", "row": 0, "column": 0, "sha256": "a", "z": 1}
            ),
            "a source's row that is a text": put(
                "sources", 0, value={"image": "x", "row": "a", "column": 0, "sha256": "a"}
            ),
            "a source's row out of range": put("sources", 0, "row", value=10**9),
            "no format": drop("format"),
            "a format of the future": put("format", value=99),
            "a format that is a text": put("format", value="x"),
            "a format below": put("format", value=-1),
            "no metadata": drop("metadata"),
            "metadata that are a list": put("metadata", value=[]),
            "no preprocessing": drop("metadata", "preprocessing"),
            "preprocessing that is null": put("metadata", "preprocessing", value=None),
            "a size of 0": put("metadata", "preprocessing", "size", value=[0, 0]),
            "a size of 40,000": put("metadata", "preprocessing", "size", value=[40_000, 40_000]),
            "a size that is a text": put("metadata", "preprocessing", "size", value="big"),
            "a size of three": put("metadata", "preprocessing", "size", value=[1, 2, 3]),
            "a negative size": put("metadata", "preprocessing", "size", value=[-24, 24]),
            "a mean that is NaN": put("metadata", "preprocessing", "mean", value=[float("nan")] * 3),
            "a deviation of zero": put("metadata", "preprocessing", "std", value=[0.0] * 3),
            "means that are texts": put("metadata", "preprocessing", "mean", value=["a", "b", "c"]),
            "too few means": put("metadata", "preprocessing", "mean", value=[0.5]),
            "no mean": drop("metadata", "preprocessing", "mean"),
            "seven channels": put("metadata", "preprocessing", "channels", value=7),
            "channels that differ": put(
                "metadata", "preprocessing", value={"size": [24, 24], "channels": 1, "mean": [0], "std": [1]}
            ),
            **{
                f"{key} of the result is {value!r}": put("metadata", "result", key, value=value)
                for key in ("epoch", "prototypes", "validation_balanced_accuracy", "plain_classifier")
                for value in ("x", -1, [], True)
            },
            "no epoch in the result": drop("metadata", "result", "epoch"),
            "the header is a list": lambda values: [1, 2],
            "the header is a number": lambda values: 3,
        }.items()
        for case in damaged(f"header: {name}", model_header(change), "predict")
    ),
    *damaged(
        "weights that are NaN",
        tensors(M, "protopfaith", lambda t: void(t["prototypes"].fill_(float("nan")))),
        *sorted(COMMANDS.keys() - {"resume"}),
        says=(M,),
    ),
    *damaged(
        "weights that are whole numbers",
        tensors(M, "protopfaith", lambda t: t.update({"prototypes": t["prototypes"].long()})),
        "predict",
        says=(M,),
    ),
    *damaged(
        "no channels", model_header(put("architecture", "prototype_channels", value=0)), "predict", says=(M,)
    ),
    *damaged(
        "a kept recipe that is none",
        model_header(put("metadata", "recipe", "optimization", "batch_size", value=[])),
        "predict",
        says=(M, "batch_size"),
    ),
    *damaged(
        "a recipe with a wrong type",
        run_recipe(put("costs", "balanced", value="fal")),
        "evaluate",
        says=("recipe.yaml", "costs.balanced"),
    ),
    *damaged(
        "a tensor is missing", tensors(M, "protopfaith", lambda t: void(t.pop("prototypes"))), "predict"
    ),
    *damaged(
        "a tensor too many", tensors(M, "protopfaith", lambda t: t.update(more=torch.zeros(2))), "predict"
    ),
    *damaged(
        "a tensor of another shape",
        tensors(M, "protopfaith", lambda t: t.update(prototypes=torch.zeros(2, 2))),
        "predict",
    ),
    *damaged(
        "prototype classes out of range",
        tensors(M, "protopfaith", lambda t: void(t["prototype_classes"].fill_(99))),
        "predict",
        "explain",
    ),
    *damaged(
        "negative prototype classes",
        tensors(M, "protopfaith", lambda t: void(t["prototype_classes"].fill_(-1))),
        "explain",
    ),
    *damaged(
        "another run's model",
        lambda place: void(place.copy("other.safetensors", "run/model.safetensors")),
        "predict",
        "explain",
        "evaluate",
    ),
    *damaged("no recipe", remove("recipe.yaml"), *COMMANDS.keys(), says=("recipe.yaml",)),
    *damaged("an empty recipe", replace("recipe.yaml", ""), "evaluate", "resume"),
    *damaged("a broken recipe", replace("recipe.yaml", "model: ["), "evaluate", "resume"),
    *damaged(
        "a recipe of another data set", run_recipe(put("data", "name", value="nothing")), "evaluate", "prune"
    ),
    *damaged("a recipe with other images", run_recipe(put("data", "seed", value=5)), "resume"),
    *damaged("a recipe with another encoder", run_recipe(put("model", "encoder", value="convnet")), "resume"),
    *damaged(
        "no environment",
        remove("environment.json"),
        "evaluate",
        "prune",
        "resume",
        "faithfulness",
        says=("environment.json",),
    ),
    *damaged(
        "an empty environment",
        replace("environment.json", ""),
        "evaluate",
        "resume",
        says=("environment.json",),
    ),
    *damaged("a broken environment", replace("environment.json", "{"), "evaluate", "prune"),
    *damaged("a list as environment", replace("environment.json", "[]"), "evaluate", "resume"),
    *damaged("a deep environment", replace("environment.json", "[" * 100_000), "evaluate"),
    *damaged("an environment that is not UTF-8", replace("environment.json", b"\xff\xfe"), "evaluate"),
    *damaged("a folder as environment", folder_instead("environment.json"), "evaluate"),
    *damaged(
        "an environment without a fingerprint", environment(drop("data_fingerprint")), "evaluate", "resume"
    ),
    *damaged("another fingerprint", environment(put("data_fingerprint", value="x")), "evaluate", "resume"),
    *damaged(
        "another run's environment",
        environment(put("data_fingerprint", value="x")),
        "predict",
        "explain",
        says=("environment.json", "another run"),
    ),
    *(
        case
        for name, change in {
            "another fold": put("data", "fold", value=3),
            "no such encoder": put("model", "encoder", value=""),
            "no such activation": put("model", "activation", value="x"),
            "no such data set": put("data", "name", value="x"),
            "weights nowhere": put("model", "weights", value="nowhere"),
        }.items()
        for case in damaged(f"recipe edited: {name}", run_recipe(change), "resume", says=("recipe.yaml",))
    ),
    *(
        case
        for name, damage in {
            "empty": replace(L, b""),
            "text": replace(L, "x"),
            "cut": cut(L, 0.5),
            "flipped": flip(L, 0.7),
            "a folder": folder_instead(L),
            "no position": last_header(drop("position")),
            "position of a wrong kind": last_header(put("position", value=3)),
            "position without keys": last_header(put("position", value={"x": 1})),
            "a stage out of range": last_header(put("position", "stage", value=99)),
            "a negative stage": last_header(put("position", "stage", value=-1)),
            "a stage that is a text": last_header(put("position", "stage", value="x")),
            "an epoch out of range": last_header(
                lambda v: v["position"].update(finished=False, stage=1, epoch=99)
            ),
            "best of a wrong kind": last_header(
                lambda v: v["position"].update(finished=False, stage=2, epoch=0, best="x")
            ),
            "no sources": last_header(drop("sources")),
            "sources of a wrong kind": last_header(put("sources", value=[3])),
            "too few sources": last_header(put("sources", value=[])),
            "no groups": last_header(drop("groups")),
            "groups of a wrong kind": last_header(
                lambda v: (v.update(groups=3), v["position"].update(finished=False, stage=3, epoch=1))[0]
            ),
            "a scheduler of a wrong kind": last_header(
                lambda v: (v.update(scheduler=[]), v["position"].update(finished=False, stage=3, epoch=1))[0]
            ),
            **{
                f"{part} with {key} {value!r}": last_header(
                    lambda v, part=part, key=key, value=value: (
                        (v[part][0] if part == "groups" else v[part]).update({key: value}),
                        v["position"].update(finished=False, stage=3, epoch=1),
                    )[1]
                )
                for part, key, value in (
                    ("groups", "weight_decay", None),
                    ("groups", "lr", "x"),
                    ("groups", "lr", float("nan")),
                    ("groups", "betas", [0.9]),
                    ("scheduler", "last_epoch", "x"),
                    ("scheduler", "base_lrs", True),
                    ("scheduler", "max_lrs", [[1]]),
                    ("scheduler", "step_ratio", 0),
                    ("scheduler", "total_size", -1),
                    ("scheduler", "cycle_momentum", ["a"]),
                )
            },
            "no tensors": after(
                unfinished,
                tensors(
                    L,
                    "protopfaith-training",
                    lambda t: [t.pop(k) for k in list(t) if k.startswith("model.")] and None,
                ),
            ),
            "a tensor of another shape": after(
                unfinished,
                tensors(L, "protopfaith-training", lambda t: t.update({"model.prototypes": torch.zeros(1)})),
            ),
            **{
                f"{end} {what}": one_tensor(end, change)
                for end in ("prototypes", ".running_var", "head.weight", "exp_avg", "exp_avg_sq", ".step")
                for what, change in TENSORS.items()
            },
            "log_scale is flat": one_tensor("log_scale", TENSORS["is flat"]),
            "log_scale is NaN": one_tensor("log_scale", TENSORS["is NaN"]),
            "no optimizer": after(
                late,
                tensors(
                    L, "protopfaith-training", lambda t: [t.pop(k) for k in list(t) if "optim" in k] and None
                ),
            ),
            "an optimizer of other weights": after(
                late,
                tensors(L, "protopfaith-training", lambda t: t.update({"optimizer.9.step": torch.ones(())})),
            ),
            "something kept that is none": after(
                late, tensors(L, "protopfaith-training", lambda t: t.update({"kept.x": torch.zeros(2)}))
            ),
            "prototypes of other classes": after(
                late,
                tensors(L, "protopfaith-training", lambda t: void(t["model.prototype_classes"].fill_(0))),
            ),
            "best beyond 1": after(late, last_header(put("position", "best", value=7.0))),
            "best that is NaN": after(late, last_header(put("position", "best", value=float("nan")))),
            "cycles lost without end": after(late, last_header(put("position", "stale_cycles", value=99))),
            "a format of the future": last_header(put("format", value=2)),
            "a header that is a list": last_header(lambda values: [1]),
        }.items()
        for case in damaged(f"last.safetensors: {name}", damage, "resume", says=(L,))
    ),
    *(
        case
        for name, damage in {
            "a folder": folder_instead("metrics.csv"),
            "not UTF-8": replace("metrics.csv", b"\xff\xfe\n\xff"),
            "other columns": replace("metrics.csv", "a,b\n1,2\n"),
        }.items()
        for case in damaged(f"metrics.csv: {name}", after(unfinished, damage), "resume")
    ),
    *damaged("a pipe as recipe", pipe("recipe.yaml"), "predict", says=("recipe.yaml",)),
    *damaged("a pipe as metrics", after(unfinished, pipe("metrics.csv")), "resume", says=("metrics.csv",)),
    *damaged("a pipe as checkpoint", pipe(L), "resume", says=(L,)),
    *damaged("metrics of gigabytes", after(unfinished, grow("metrics.csv")), "resume", says=("metrics.csv",)),
    *damaged("a finished training without its model", remove(M), "resume", "predict", says=(M, "train anew")),
    *damaged(
        "the checkpoint of another run",
        after(unfinished, last_header(put("recipe", "seed", value=5))),
        "resume",
        says=(L, "another run", "seed"),
    ),
    *damaged(
        "a file instead of the folder",
        file_instead_of_run,
        "predict",
        "evaluate",
    ),
]

GOOD = [
    *damaged("nothing wrong", lambda place: None, *sorted(COMMANDS.keys() - {"resume"}), good=True),
    *damaged("finished already", lambda place: None, "resume", good=True),
    *damaged("in the middle", unfinished, "resume", good=True),
    *damaged("a mark that is no text", environment(put("mark", value="\ud800")), "explain", good=True),
    *damaged("a pipe as reference", pipe("reference.json"), "explain", good=True),
    *damaged("brackets as reference", replace("reference.json", "[" * 200_000), "predict", good=True),
    *damaged(
        "a reference of no classes", kept_reference(usual_distances=""), "predict", "explain", good=True
    ),
    *damaged("no last checkpoint", remove(L), "predict", "explain", "resume", good=True),
    *damaged("no metrics", remove("metrics.csv"), "predict", "explain", good=True),
    *damaged("metrics cut in a line", after(unfinished, cut("metrics.csv", 0.6)), "resume", good=True),
    *(
        case
        for name, damage in {
            "rows twice": lambda rows: rows + rows[-1:],
            "rows from last to first": lambda rows: rows[:1] + rows[:0:-1],
            "a row of texts": lambda rows: [*rows, ",".join(["x"] * 15) + "\n"],
            "a digit that is none": lambda rows: [*rows, rows[-1].replace("4,", "²,", 1)],
            "an epoch of 5,000 digits": lambda rows: [*rows, "9" * 5000 + rows[-1][1:]],
        }.items()
        for case in damaged(
            f"metrics with {name}", after(unfinished, metrics_rows(damage)), "resume", good=True
        )
    ),
    *damaged("no metrics in the middle", after(unfinished, remove("metrics.csv")), "resume", good=True),
    *damaged(
        "no tensorboard",
        lambda place: __import__("shutil").rmtree(place / "run" / "tensorboard"),
        "predict",
        good=True,
    ),
    *damaged(
        "leftovers of a killed process",
        replace(".last.safetensors.0123abcd.partial", "x"),
        "predict",
        "resume",
        good=True,
    ),
]

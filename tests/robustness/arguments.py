"""One wrong argument at a time: public functions in Python, and a few of the command line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import torch

from protopfaith.data import Augmentation, ImageSet, Preprocessing, Record, augment, load_data, prepare
from protopfaith.devices import choose_device
from protopfaith.evaluation import (
    EXPLAINERS,
    Options,
    bootstrap,
    check_axioms,
    judge_findings,
    randomization,
    removal_ranks,
    stability,
    true_values,
)
from protopfaith.explanation import Settings, ShapleyAttribution, decompose, protopnet_maps, quantus_explainer
from protopfaith.moments import Gaussian
from protopfaith.network import (
    ProtoPNet,
    build_encoder,
    class_of,
    duplicate_groups,
    probabilities,
    route_of,
    weights_of,
)
from protopfaith.shapley import Attribution, Game, Players, estimate, redistribute, relative_error
from protopfaith.training import build_model, train, train_folds
from tests.robustness.harness import Case

NAN, INF = math.nan, math.inf
IMAGE = torch.arange(64.0).reshape(1, 8, 8)
JUNK: dict[str, Any] = {
    "nothing": None,
    "an object": object(),
    "bytes": b"x",
    "a dict": {},
    "a list of nothing": [None],
    "letters": np.array(["a"]),
    "complex numbers": torch.zeros(3, 16, 16, dtype=torch.complex64),
    "a type": int,
}


def total(images: torch.Tensor) -> torch.Tensor:
    return images.flatten(1).sum(1)


def game(function: Any = total, image: Any = IMAGE, players: Any = 2, *more: Any, **rest: Any) -> Game:
    return Game(function, image, players, *more, **rest)


@cache
def model() -> ProtoPNet:
    return ProtoPNet("small", ["cat", "dog"], 2, 8).eval()


@cache
def options() -> Options:
    return Options(Players.windows((16, 16), 8), budget=66)


@cache
def found() -> Attribution:
    return estimate(game(), budget=200)


def pictured() -> torch.Tensor:
    return torch.zeros(3, 16, 16)


def subject() -> dict[str, Any]:
    return {"model": model(), "image": pictured(), "prototypes": [0, 1], "options": options()}


def judged(**subject: Any) -> dict[str, Any]:
    return {"explainer": EXPLAINERS["random"], **subject}


# What is right, by function; each argument is replaced by each kind of junk.
RIGHT: dict[str, tuple[Callable[..., Any], Callable[[], dict[str, Any]]]] = {
    "Augmentation": (Augmentation, lambda: {"rotation": 1.0, "scale": (1.0, 1.0), "flip": 0.5}),
    "augment": (
        augment,
        lambda: {
            "pixels": torch.zeros(2, 3, 8, 8, dtype=torch.uint8),
            "augmentation": Augmentation(),
            "generator": torch.Generator(),
        },
    ),
    "ImageSet": (
        ImageSet,
        lambda: {
            "pixels": np.zeros((1, 3, 8, 8), np.uint8),
            "records": [Record("a", 0, "")],
            "classes": ["x"],
        },
    ),
    "load_data": (load_data, lambda: {"name": "birds", "skip_unreadable": False}),
    "prepare": (prepare, lambda: {"name": "birds"}),
    "build_encoder": (build_encoder, lambda: {"name": "small", "in_channels": 3}),
    "class_of": (class_of, lambda: {"network": model(), "prototype": 0}),
    "weights_of": (weights_of, lambda: {"network": model()}),
    "route_of": (route_of, lambda: {"network": model(), "distances": torch.zeros(4)}),
    "duplicate_groups": (
        duplicate_groups,
        lambda: {"prototypes": torch.zeros(2, 8), "classes": torch.zeros(2).long(), "tolerance": 0.0},
    ),
    "build_model": (build_model, lambda: {"recipe": "birds", "data": None}),
    "train": (train, lambda: {"recipe": 3, "folder": "nowhere", "resume": False}),
    "train_folds": (train_folds, lambda: {"recipe": 3, "folder": "nowhere"}),
    "bootstrap": (bootstrap, lambda: {"logits": torch.rand(4, 2), "labels": torch.tensor([0, 1, 0, 1])}),
    "judge_findings": (
        judge_findings,
        lambda: {
            "probabilities": torch.rand(4, 1),
            "labels": torch.tensor([[0], [1], [0], [1]]),
            "names": ["a"],
        },
    ),
    "removal_ranks": (removal_ranks, lambda: {"importance": torch.rand(1, 8, 8)}),
    "true_values": (true_values, lambda: {"game": game(), "budget": 300, "seed": 0}),
    "Options": (Options, lambda: {"players": Players.windows((8, 8), 4), "budget": 66, "noise": 0.1}),
    "an explainer": (EXPLAINERS["random"], subject),
    "check_axioms": (check_axioms, lambda: judged(**subject())),
    "randomization": (randomization, lambda: judged(**subject())),
    "stability": (stability, lambda: judged(**subject())),
    "decompose": (decompose, lambda: {"model": model(), "distances": torch.zeros(4)}),
    "relative_error": (
        relative_error,
        lambda: {"values": torch.ones(1, 4), "standard_errors": torch.ones(1, 4)},
    ),
    "redistribute": (
        redistribute,
        lambda: {"values": torch.ones(1, 4), "variances": torch.ones(1, 4), "total": torch.ones(1)},
    ),
    "Settings": (Settings, lambda: {"estimator": "default", "seed": 0, "sources": False}),
}


def by_position(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Explainers have no fixed names of arguments: theirs come in order."""
    return function(*arguments.values()) if function is EXPLAINERS["random"] else function(**arguments)


def wrong_ones() -> Iterator[Case]:
    for name, (function, right) in RIGHT.items():
        for argument in right():
            for kind, junk in JUNK.items():
                if kind == "letters" and argument in ("names", "classes"):
                    continue  # an array of texts is a list of texts

                def call(_: Any, function=function, right=right, argument=argument, junk=junk) -> Any:
                    return by_position(function, {**right(), argument: junk})

                yield Case(f"{name} with {kind} as {argument}", call=call)


class Fickle:
    """Returns more numbers from its sixth call on."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return total(images)[:, None].expand(-1, 1 if self.calls < 6 else 2)


CALLS: dict[str, Callable[[], Any]] = {
    "a game of complex numbers": lambda: game(lambda x: total(x) * 1j),
    "a game whose outputs become more": lambda: estimate(game(Fickle(), batch_size=4), budget=200),
    "a game on nothing": lambda: game(image=None),
    "a game on a list": lambda: game(image=[[1.0]]),
    "a game on a path": lambda: game(image="x.png"),
    "a game on no channels": lambda: game(image=torch.zeros(0, 8, 8)),
    "a game on complex pixels": lambda: game(image=IMAGE * 1j),
    "a game on a sparse image": lambda: game(image=IMAGE.to_sparse()),
    "a game on an image without numbers": lambda: game(image=IMAGE.to("meta")),
    "labels beyond the pixels": lambda: game(players=torch.full((8, 8), 10**12)),
    "labels that would take gigabytes": lambda: game(players=torch.full((8, 8), 3 * 10**9)),
    "labels of nothing": lambda: Players.from_labels(None),  # type: ignore[arg-type]
    "labels of objects": lambda: Players.from_labels([[object()]]),
    "windows on a huge image": lambda: Players.windows((10**6, 10**6), 1),
    "windows on an impossible image": lambda: Players.windows((10**9, 10**9), 1),
    "superpixels of complex pixels": lambda: Players.superpixels(torch.rand(3, 8, 8) * 1j, 4),
    "players to a device that is none": lambda: Players.windows((8, 8), 2).to("nowhere"),
    "masks of too few players": lambda: Players.windows((8, 8), 2).masks(torch.zeros(1, 3).bool()),
    "a map of nothing": lambda: Players.windows((8, 8), 2).to_map(None),  # type: ignore[arg-type]
    "two sigmas of a blur": lambda: game(baseline="blur:1,2"),
    "a baseline of complex numbers": lambda: game(baseline=IMAGE * 1j),
    "a baseline in two dimensions": lambda: game(baseline=[[1]]),
    "a baseline image with NaN": lambda: game(baseline=IMAGE * NAN),
    "half a color of whole numbers": lambda: game(image=IMAGE.long(), baseline=0.5),
    "autocast by name": lambda: game(autocast="bfloat16"),
    "autocast to float32": lambda: game(autocast=torch.float32),
    "autocast to int8": lambda: game(autocast=torch.int8),
    "coalitions of nothing": lambda: game()(None),  # type: ignore[arg-type]
    "coalitions of other players": lambda: game()(torch.zeros(2, 3).bool()),
    "one coalition alone": lambda: game()(torch.zeros(16).bool()),
    "coalitions of halves": lambda: game()(torch.full((2, 16), 0.5)),
    "outputs in lists": lambda: estimate(game(), budget=200, outputs=[[0]]),  # type: ignore[list-item]
    "an estimator in a list": lambda: estimate(game(), ["owen"], budget=200),  # type: ignore[arg-type]
    "to go on from text": lambda: estimate(game(), budget=200, resume="x"),  # type: ignore[arg-type]
    "to go on from True": lambda: estimate(game(), budget=200, resume=True),  # type: ignore[arg-type]
    "progress in words": lambda: estimate(game(), budget=200, progress="x"),  # type: ignore[arg-type]
    "intervals of 95": lambda: found().interval(95),
    "intervals of NaN": lambda: found().interval(NAN),
    "decided at a negative rate": lambda: found().decided(-1),
    "an output that is not there": lambda: found().of_outputs([5]),
    "no outputs": lambda: found().of_outputs([]),
    "saved nowhere": lambda: found().save(None),  # type: ignore[arg-type]
    "errors of other values": lambda: relative_error(torch.ones(1, 2), torch.ones(1, 3)),
    "shares of other totals": lambda: redistribute(torch.ones(1, 2), torch.ones(1, 2), torch.ones(4)),
    "an attribution of nothing": lambda: Attribution(None, None, None, None, 1, None, "a", "b", 0),  # type: ignore[arg-type]
    "a Gaussian with factors of text": lambda: Gaussian(torch.zeros(2), 1.0, "x"),  # type: ignore[arg-type]
    "a Gaussian with a complex mean": lambda: Gaussian(torch.zeros(2) * 1j),
    "Captum with a target of text": lambda: ShapleyAttribution(total, 4).attribute(IMAGE[None], target="x"),  # type: ignore[arg-type]
    "Captum with no target": lambda: ShapleyAttribution(total, 4).attribute(IMAGE[None], target=[]),  # type: ignore[arg-type]
    "Captum that repeats maybe": lambda: ShapleyAttribution(total, 4, repeat="maybe"),  # type: ignore[arg-type]
    "Quantus on a device that is none": lambda: quantus_explainer(total, IMAGE[None], [0], "nowhere"),
    "normalized text": lambda: Preprocessing((8, 8)).normalize("x"),  # type: ignore[arg-type]
    "budgets of options below one": lambda: Options(Players.windows((8, 8), 4), budget=0),
    "augmentation that flips twice": lambda: Augmentation(flip=2.0),
    # as arrays are, which compare with a name entry by entry, and may declare more than any memory holds
    "a device that is an array": lambda: choose_device(np.zeros(3)),  # type: ignore[arg-type]
    "autocast that is an array": lambda: Settings(autocast=np.zeros(3)),  # type: ignore[arg-type]
    "an output that is an array": lambda: Settings(output=np.zeros(3)),  # type: ignore[arg-type]
    "an estimator that is an array": lambda: estimate(game(), np.zeros(3)),  # type: ignore[arg-type]
    "an activation that is an array": lambda: ProtoPNet("small", 2, 1, 8, activation=np.zeros(3)),  # type: ignore[arg-type]
    "layers that are a number": lambda: ProtoPNet("small", 2, 1, 8, layers=3),  # type: ignore[arg-type]
    "an epsilon that is text": lambda: ProtoPNet("small", 2, 1, 8, similarity="log", epsilon="x"),  # type: ignore[arg-type]
    "channels that are an array": lambda: Preprocessing((8, 8), np.zeros(3)),  # type: ignore[arg-type]
    "bits that are an array": lambda: Preprocessing((8, 8), bits=np.zeros(3)),  # type: ignore[arg-type]
    "a network on an array": lambda: model()(np.zeros((1, 3, 16, 16))),
    "outputs without dimensions": lambda: estimate(game(), budget=200, outputs=torch.tensor(0)),  # type: ignore[arg-type]
    "an attribution in an array": lambda: Attribution.load(np.zeros((9, 9))),  # type: ignore[arg-type]
    "an attribution saved without a name": lambda: found().save(""),
    "options of a baseline that are a list": lambda: game(baseline_options=[1]),
    "a sparse baseline": lambda: game(baseline=IMAGE.to_sparse()),
    "a baseline without numbers": lambda: game(baseline=IMAGE.to("meta")),
    "a Gaussian of 10^11 numbers": lambda: Gaussian(torch.zeros(1).expand(10**11)),
    "a variance of 10^11 numbers": lambda: Gaussian(torch.zeros(2), torch.zeros(1).expand(10**11)),
    "labels of 10^10 pixels": lambda: Players(torch.zeros(1, 1).long().expand(10**5, 10**5)),
    "superpixels of 10^10 pixels": lambda: Players.superpixels(torch.rand(1).expand(3, 10**5, 10**5), 4),
    "maps of 10^18 pixels": lambda: protopnet_maps(model(), torch.rand(4, 3, 3), (10**9, 10**9)),
    "probabilities of whole numbers": lambda: probabilities(torch.ones(2).long()),
}


def told(name: str, *arguments: str, says: tuple[str, ...] = (), images: bool = False) -> Case:
    return Case(
        name, command=lambda p: [*arguments, *([str(p.run), str(p.image)] if images else [])], says=says
    )


def table(name: str, between: str) -> Case:
    """An external test set, with something else between its cells; image 0 of each class is no test image."""
    content = "file,label\nblue/0.png,blue\nno/such.png,red\n".replace(",", between)

    def command(place: Any) -> list[Any]:
        path = place.write("t.csv", content)
        return ["evaluate", place.run, "--data", path, "--root", place.images]

    return Case(name, command=command, says=("such.png",))


TYPED = list(wrong_ones())
CASES = [
    *TYPED,
    *(Case(f"arguments: {name}", call=lambda _, call=call: call()) for name, call in CALLS.items()),
    Case("an empty image", command=lambda p: ["predict", p.run, ""], says=("empty",)),
    Case("an empty folder of images", command=lambda p: ["evaluate", p.run, "--root", ""], says=("--root",)),
    told("an empty recipe", "train", "", says=("empty",)),
    Case(
        "a hundred devices of a CPU",
        command=lambda p: [
            "train",
            p.copy("tiny.yaml"),
            "--root",
            p.images,
            "--out",
            p / "out",
            "compute.devices=99",
        ],
        says=("compute.devices", "use fewer"),
    ),
    Case(
        "a contact sheet that is text",
        command=lambda p: ["data", "show", "folder", "--root", p.images, "--out", p / "sheet.txt"],
        says=("PNG", "sheet.txt"),
    ),
    table("a table with semicolons is read", ";"),
    table("a table with tabs is read", "\t"),
]


def in_place(images: torch.Tensor) -> torch.Tensor:
    return total(images.mul_(0.5))


def unchanged() -> None:
    image = IMAGE.clone()
    estimate(game(in_place, image), budget=200)
    assert torch.equal(image, IMAGE)


TAKEN: dict[str, Callable[[], Any]] = {
    "a game whose function works in place": unchanged,
    "a game of whole numbers": lambda: estimate(game(lambda x: total(x).long()), budget=200),
    "a game of truth values": lambda: estimate(game(lambda x: total(x) > 900), budget=200),
    "a game on an array of another byte order": lambda: game(image=IMAGE.numpy().astype(">f4")),
    "a game on an array from its end": lambda: game(image=IMAGE.numpy()[:, ::-1]),
    "labels as an array": lambda: game(players=np.zeros((8, 8), np.uint8)),
    "labels of int32": lambda: game(players=torch.zeros(8, 8, dtype=torch.int32)),
    "coalitions as an array": lambda: game()(np.ones((2, 16), bool)),  # type: ignore[arg-type]
    "coalitions of ones": lambda: game()(torch.ones(2, 16)),
    "windows by an array": lambda: Players.windows(np.array([8, 8]), 2),  # type: ignore[arg-type]
    "superpixels of an array": lambda: Players.superpixels(np.random.rand(3, 16, 16), 4),  # type: ignore[arg-type]
    "outputs that are generated": lambda: estimate(game(), budget=200, outputs=iter([0])),  # type: ignore[arg-type]
    "outputs as a tensor": lambda: estimate(game(), budget=200, outputs=torch.tensor([0])),  # type: ignore[arg-type]
}
GOOD = [
    Case(f"arguments: {name}", call=lambda _, call=call: call(), good=True) for name, call in TAKEN.items()
]

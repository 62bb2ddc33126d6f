"""Arguments that make no sense, in Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from itertools import count
from typing import Any

import numpy as np
import torch

import protopfaith as pf
from protopfaith.data import Augmentation, Preprocessing, load_data, read_image
from protopfaith.evaluation import aopc, compare_with_truth, paper_aopc, removal_curves, removal_ranks
from protopfaith.evaluation.metrics.classification import classification
from protopfaith.network import build_encoder, load, prune, read_metadata, save
from protopfaith.shapley import make_baseline
from protopfaith.training import load_recipe, prune_run
from tests.robustness.harness import Case, Place

NAN, INF = float("nan"), float("inf")
IMAGE = torch.rand(3, 24, 24, generator=torch.Generator().manual_seed(0))


@cache
def model() -> pf.ProtoPNet:
    return pf.ProtoPNet("small", ["cat", "dog"], 2, 8).eval()


def network(**changes: Any) -> pf.ProtoPNet:
    arguments = {
        "encoder": "small",
        "classes": ["cat", "dog"],
        "prototypes_per_class": 2,
        "prototype_channels": 8,
    }
    return pf.ProtoPNet(**{**arguments, **changes})


def game(function: Any = None, image: Any = IMAGE, players: Any = None, **more: Any) -> pf.Game:
    function = function or (lambda x: x.sum((1, 2, 3))[:, None])
    return pf.Game(function, image, players or pf.Players.windows((24, 24), 12), **more)


def explained(**more: Any) -> Any:
    arguments = {"preprocessing": Preprocessing((24, 24)), "budget": 64, "players": 12, "sources": False}
    arguments |= more
    image = arguments.pop("image", torch.zeros(3, 24, 24, dtype=torch.uint8))
    return pf.explain(arguments.pop("model", None) or model(), image, **arguments)


def of_function(function: Any = None, image: Any = IMAGE, **more: Any) -> Any:
    function = function or (lambda x: x.flatten(1)[:, :3])
    return pf.explain_function(function, image, **({"players": 12, "budget": 64} | more))


def growing() -> Callable[[torch.Tensor], torch.Tensor]:
    """A function that gives one number more at every call."""
    counts = count(3)
    return lambda x: x.flatten(1)[:, : next(counts)]


CALLS: dict[str, Callable[[], Any]] = {
    # any function
    "explain_function of a number": lambda: of_function(3),
    "explain_function of no file": lambda: of_function("nothing.onnx"),
    "explain_function of images": lambda: of_function(lambda x: x),
    "explain_function that gives text": lambda: of_function(lambda x: "text"),
    "explain_function that gives nothing": lambda: of_function(lambda x: torch.zeros(len(x), 0)),
    "explain_function that gives NaN": lambda: of_function(lambda x: x.flatten(1)[:, :3] * NAN),
    "explain_function that is random": lambda: of_function(lambda x: torch.rand(len(x), 3)),
    "explain_function that gives nothing but a shape": lambda: of_function(
        lambda x: torch.empty(len(x), 3, device="meta")
    ),
    "explain_function that gives sparse numbers": lambda: of_function(
        lambda x: x.flatten(1)[:, :3].to_sparse()
    ),
    "explain_function that gives more numbers each time": lambda: of_function(growing()),
    "explain_function of a network without weights": lambda: of_function(
        torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 24 * 24, 2, device="meta"))
    ),
    **{
        f"explaining a tensor that is {kind}": partial(explained, image=odd)
        for kind, odd in {
            "nested": torch.nested.nested_tensor([torch.rand(3), torch.rand(4)]),
            "of 8-bit floats": IMAGE.to(torch.float8_e5m2),
            "of four channels": torch.rand(4, 24, 24),
            "of no pixels": torch.rand(3, 0, 24),
            "of 100,000 x 100,000 pixels": torch.rand(1).expand(3, 100_000, 100_000),
        }.items()
    },
    "a Gaussian with a sparse variance": lambda: pf.Gaussian(torch.zeros(2), torch.ones(2).to_sparse()),
    "a Gaussian without numbers": lambda: pf.Gaussian(torch.zeros(2), torch.ones(2, device="meta")),
    "explain_function with too few names": lambda: of_function(names=["a"]),
    "explain_function with an unknown name": lambda: of_function(names=["a", "b", "c"], outputs="d"),
    "explain_function with outputs out of range": lambda: of_function(outputs=[3]),
    "explain_function with a negative output": lambda: of_function(outputs=-1),
    "explain_function with no outputs": lambda: of_function(outputs=[]),
    "explain_function with half an output": lambda: of_function(outputs=[0.5]),
    "explain_function of no image": lambda: of_function(image=None),
    "explain_function of a vector": lambda: of_function(image=torch.rand(24)),
    "explain_function of a missing file": lambda: of_function(image="nothing.png"),
    "explain_function on no device": lambda: of_function(device="tpu"),
    "explain_function with a budget of one": lambda: of_function(budget=1),
    "explain_function with another preprocessing": lambda: of_function(
        image=np.zeros((24, 24, 3), np.uint8), preprocessing=lambda picture: None
    ),
    # networks of others
    "convert None": lambda: pf.convert(None, "new"),  # type: ignore[arg-type]
    "convert nothing": lambda: pf.convert("nothing.pth", "new"),
    "convert with a negative size": lambda: pf.convert("nothing.pth", "new", size=-1),
    "convert on no device": lambda: pf.convert("nothing.pth", "new", device="tpu"),
    "explain a network that is none": lambda: pf.explain(torch.nn.Flatten(), IMAGE),  # type: ignore[arg-type]
    # moments
    "Gaussian with a negative variance": lambda: pf.Gaussian(torch.zeros(2), torch.tensor([1.0, -1.0])),
    "Gaussian with a variance that is NaN": lambda: pf.Gaussian(torch.zeros(2), torch.tensor([1.0, NAN])),
    "Gaussian with a negative number": lambda: pf.Gaussian(torch.zeros(2), -1.0),
    "Gaussian with NaN": lambda: pf.Gaussian(torch.zeros(2), NAN),
    "Gaussian of None": lambda: pf.Gaussian(None),  # type: ignore[arg-type]
    "Gaussian of a list": lambda: pf.Gaussian([1, 2]),  # type: ignore[arg-type]
    "Gaussian with another shape": lambda: pf.Gaussian(torch.zeros(2), torch.ones(3)),
    "Gaussian with a text": lambda: pf.Gaussian(torch.zeros(2), "x"),  # type: ignore[arg-type]
    "Gaussian with factors of another shape": lambda: pf.Gaussian(torch.zeros(2), torch.ones(2), torch.ones(3)),
    # preprocessing
    "Preprocessing with std 0": lambda: Preprocessing((24, 24), 3, (0, 0, 0), (0, 0, 0)),
    "Preprocessing with a negative std": lambda: Preprocessing((24, 24), 3, (0, 0, 0), (1, 1, -1)),
    "Preprocessing with a mean that is NaN": lambda: Preprocessing((24, 24), 3, (NAN, 0, 0)),
    "Preprocessing with std NaN": lambda: Preprocessing((24, 24), 3, (0, 0, 0), (1, 1, NAN)),
    "Preprocessing with an infinite mean": lambda: Preprocessing((24, 24), 3, (INF, 0, 0)),
    "Preprocessing of size 0": lambda: Preprocessing((0, 24)),
    "Preprocessing of a negative size": lambda: Preprocessing((-1, 24)),
    "Preprocessing of size 10^6": lambda: Preprocessing((10**6, 10**6)),
    "Preprocessing of size None": lambda: Preprocessing(None),  # type: ignore[arg-type]
    "Preprocessing of a text": lambda: Preprocessing("24"),  # type: ignore[arg-type]
    "Preprocessing of three sizes": lambda: Preprocessing((1, 2, 3)),  # type: ignore[arg-type]
    "Preprocessing of 2 channels": lambda: Preprocessing((24, 24), 2),
    "Preprocessing with text means": lambda: Preprocessing((24, 24), 3, ("a", "b", "c")),  # type: ignore[arg-type]
    "Preprocessing from a list": lambda: Preprocessing.from_dict([1]),  # type: ignore[arg-type]
    "Preprocessing from nothing": lambda: Preprocessing.from_dict({}),
    "Preprocessing of floats": lambda: Preprocessing((24, 24))(torch.rand(3, 24, 24)),
    "Preprocessing of None as image": lambda: Preprocessing((24, 24))(None),  # type: ignore[arg-type]
    "Preprocessing of a flat tensor": lambda: Preprocessing((24, 24))(torch.zeros(5, dtype=torch.uint8)),
    "Preprocessing of five channels": lambda: Preprocessing((24, 24))(torch.zeros(5, 8, 8, dtype=torch.uint8)),
    "Preprocessing of an empty tensor": lambda: Preprocessing((24, 24))(torch.zeros(3, 0, 8, dtype=torch.uint8)),
    # players
    "superpixels of 0": lambda: pf.Players.superpixels(IMAGE, 0),
    "superpixels of -1": lambda: pf.Players.superpixels(IMAGE, -1),
    "superpixels of 10^12": lambda: pf.Players.superpixels(IMAGE, 10**12),
    "superpixels of 1.5": lambda: pf.Players.superpixels(IMAGE, 1.5),  # type: ignore[arg-type]
    "superpixels of a text": lambda: pf.Players.superpixels(IMAGE, "x"),  # type: ignore[arg-type]
    "superpixels of None": lambda: pf.Players.superpixels(None, 5),  # type: ignore[arg-type]
    "superpixels of NaN": lambda: pf.Players.superpixels(IMAGE * NAN, 5),
    "superpixels with compactness 0": lambda: pf.Players.superpixels(IMAGE, 5, compactness=0),
    "superpixels with compactness NaN": lambda: pf.Players.superpixels(IMAGE, 5, compactness=NAN),
    "windows of 0": lambda: pf.Players.windows((24, 24), 0),
    "windows of -1": lambda: pf.Players.windows((24, 24), -1),
    "windows of 1.5": lambda: pf.Players.windows((24, 24), 1.5),  # type: ignore[arg-type]
    "windows of a text": lambda: pf.Players.windows((24, 24), "x"),  # type: ignore[arg-type]
    "windows of None": lambda: pf.Players.windows(None, 3),  # type: ignore[arg-type]
    "windows of no image": lambda: pf.Players.windows((0, 24), 3),
    "windows of three": lambda: pf.Players.windows((24, 24), (1, 2, 3)),
    "windows of 0 channels": lambda: pf.Players.windows((24, 24), 12, channels=0),
    "players with a hole": lambda: pf.Players(torch.tensor([[0, 2], [0, 2]])),
    "negative players": lambda: pf.Players(torch.tensor([[-1, 0], [0, 1]])),
    "players of floats": lambda: pf.Players(torch.rand(4, 4)),
    "players of None": lambda: pf.Players(None),  # type: ignore[arg-type]
    "players of a vector": lambda: pf.Players(torch.zeros(4, dtype=torch.long)),
    "no players": lambda: pf.Players(torch.zeros(0, 0, dtype=torch.long)),
    # games
    "a game of None": lambda: pf.Game(None, IMAGE, pf.Players.windows((24, 24), 12)),  # type: ignore[arg-type]
    "a game without an image": lambda: game(image=None),
    "a game of a flat image": lambda: game(image=torch.zeros(10)),
    "a game of another size": lambda: game(image=torch.zeros(3, 12, 12)),
    "a game of NaN": lambda: pf.estimate(game(image=IMAGE * NAN), budget=64),
    "a game without outputs": lambda: pf.estimate(game(lambda x: x.new_zeros(len(x), 0)), budget=64),
    "a game that gives too few": lambda: pf.estimate(game(lambda x: torch.zeros(1, 1)), budget=64),
    "a game that gives None": lambda: game(lambda x: None),
    "a game that gives texts": lambda: game(lambda x: "x"),
    "a game of players that are None": lambda: pf.Game(lambda x: x, IMAGE, None),  # type: ignore[arg-type]
    "a game with a batch of 0": lambda: game(batch_size=0),
    "a game with a batch of -1": lambda: game(batch_size=-1),
    "a game with a batch of a text": lambda: game(batch_size="x"),
    "a game with no memory": lambda: game(memory=-1),
    "a baseline of NaN": lambda: game(baseline=NAN),
    "a baseline of a text": lambda: game(baseline="nothing"),
    "a baseline of None": lambda: game(baseline=None),
    "a baseline of two colors": lambda: game(baseline=[0.1, 0.2]),
    "a baseline of another shape": lambda: game(baseline=torch.zeros(3, 5, 5)),
    "a blur of inf": lambda: make_baseline("blur", IMAGE, sigma=INF),
    "a blur of NaN": lambda: make_baseline("blur", IMAGE, sigma=NAN),
    "a blur of -1": lambda: make_baseline("blur", IMAGE, sigma=-1.0),
    "a blur of 10^9": lambda: make_baseline("blur", IMAGE, sigma=1e9),
    # estimates
    "an unknown estimator": lambda: pf.estimate(game(), "nothing"),
    "an estimator that is None": lambda: pf.estimate(game(), None),  # type: ignore[arg-type]
    "an estimate of None": lambda: pf.estimate(None),  # type: ignore[arg-type]
    "a budget of 0": lambda: pf.estimate(game(), budget=0),
    "a budget of -1": lambda: pf.estimate(game(), budget=-1),
    "a budget of a text": lambda: pf.estimate(game(), budget="x"),  # type: ignore[arg-type]
    "a budget of 1.5": lambda: pf.estimate(game(), budget=64.5),  # type: ignore[arg-type]
    "a precision of 0": lambda: pf.estimate(game(), precision=0),
    "a precision of NaN": lambda: pf.estimate(game(), precision=NAN),
    "a precision of -1": lambda: pf.estimate(game(), precision=-1),
    "a precision of a text": lambda: pf.estimate(game(), precision="x"),  # type: ignore[arg-type]
    "a seed of 10^30": lambda: pf.estimate(game(), budget=64, seed=10**30),
    "a seed of a text": lambda: pf.estimate(game(), budget=64, seed="x"),  # type: ignore[arg-type]
    "a seed of None": lambda: pf.estimate(game(), budget=64, seed=None),  # type: ignore[arg-type]
    "outputs out of range": lambda: pf.estimate(game(), budget=64, precision=0.1, outputs=[5]),
    "outputs of a text": lambda: pf.estimate(game(), budget=64, precision=0.1, outputs="x"),  # type: ignore[arg-type]
    "an unknown option": lambda: pf.estimate(game(), budget=64, nothing=3),
    # networks
    "a network of None": lambda: network(encoder=None),
    "a network of a number": lambda: network(encoder=3),
    "a network without classes": lambda: network(classes=[]),
    "a network of one class": lambda: network(classes=["cat"]),
    "a network of equal classes": lambda: network(classes=["cat", "cat"]),
    "a network of -1 classes": lambda: network(classes=-1),
    "a network of 10^9 classes": lambda: network(classes=10**9),
    "a network of classes that are None": lambda: network(classes=None),
    "a network of classes that are numbers": lambda: network(classes=[1, 2]),
    "a network of a text as classes": lambda: network(classes="cat"),
    "a network of 0 prototypes": lambda: network(prototypes_per_class=0),
    "a network of 10^9 prototypes": lambda: network(prototypes_per_class=10**9),
    "a network of texts as prototypes": lambda: network(prototypes_per_class="x"),
    "a network of 1.5 prototypes": lambda: network(prototypes_per_class=1.5),
    "a network of 0 channels": lambda: network(prototype_channels=0),
    "a network of -1 channels": lambda: network(prototype_channels=-1),
    "a network of a text as channels": lambda: network(prototype_channels="x"),
    "a network of 0 in_channels": lambda: network(in_channels=0),
    "a network of an unknown activation": lambda: network(activation="nothing"),
    "a network of an activation that is None": lambda: network(activation=None),
    "a network of an unknown similarity": lambda: network(similarity="nothing"),
    "a network of weights that are not there": lambda: network(weights="nowhere.pth"),
    "an image of one channel": lambda: model()(torch.zeros(1, 1, 24, 24)),
    "an image without batch": lambda: model()(IMAGE),
    "an image that is None": lambda: model()(None),
    "an image that is a list": lambda: model()([1, 2]),
    "an image that is too small": lambda: network(encoder="resnet18").eval()(torch.zeros(1, 3, 0, 0)),
    "an unknown encoder": lambda: build_encoder("nothing"),
    "an encoder that is None": lambda: build_encoder(None),  # type: ignore[arg-type]
    "an encoder of 0 channels": lambda: build_encoder("small", 0),
    "pruned to nothing": lambda: prune(model(), []),
    "pruned to what is not there": lambda: prune(model(), [99]),
    "pruned to texts": lambda: prune(model(), ["x"]),  # type: ignore[list-item]
    "loaded from None": lambda: load(None),  # type: ignore[arg-type]
    "metadata of a folder": lambda: read_metadata("/"),
    "saved into a folder": lambda: save(model(), "/"),
    "saved with metadata that are no JSON": lambda: save(model(), "/tmp/never.safetensors", {"a": object()}),
    # data
    "an image of None": lambda: read_image(None),  # type: ignore[arg-type]
    "an image of a number": lambda: read_image(3),  # type: ignore[arg-type]
    "an image of a folder": lambda: read_image("/"),
    "data of None": lambda: load_data(None),  # type: ignore[arg-type]
    "data of a number": lambda: load_data(3),  # type: ignore[arg-type]
    "birds of size 0": lambda: load_data("birds", size=0),
    "birds of size 10^6": lambda: load_data("birds", size=10**6),
    "birds of a text size": lambda: load_data("birds", size="x"),  # type: ignore[arg-type]
    "10^12 birds": lambda: load_data("birds", size=24, train=10**12),
    "birds of a text": lambda: load_data("birds", size=24, train="x"),
    "birds of a negative seed": lambda: load_data("birds", size=24, seed=-1),
    "birds of a text seed": lambda: load_data("birds", size=24, seed="x"),  # type: ignore[arg-type]
    "birds of fold 9": lambda: load_data("birds", size=24, fold=9),
    "an augmentation of texts": lambda: Augmentation(rotation="x"),  # type: ignore[arg-type]
    "an augmentation of NaN": lambda: Augmentation(rotation=NAN),
    # training
    "a recipe of None": lambda: load_recipe(None),  # type: ignore[arg-type]
    "a recipe of a folder": lambda: load_recipe("/"),
    "an override of None": lambda: load_recipe("birds", [None]),  # type: ignore[list-item]
    "overrides as one text": lambda: load_recipe("birds", "seed=3"),
    "training without a recipe": lambda: pf.train(None, "/tmp/never"),
    "training of a text": lambda: pf.train("birds", "/tmp/never/x"),  # type: ignore[arg-type]
    "a run of None": lambda: pf.Run(None),  # type: ignore[arg-type]
    "a run of a number": lambda: pf.Run(3),  # type: ignore[arg-type]
    "a run of a file": lambda: pf.Run("/dev/null"),
    "pruning None": lambda: prune_run(None, "/tmp/never/x"),  # type: ignore[arg-type]
    # explaining
    "explaining None": lambda: pf.explain(None, IMAGE),  # type: ignore[arg-type]
    "explaining a number": lambda: pf.explain(3, IMAGE),  # type: ignore[arg-type]
    "explaining without preprocessing": lambda: explained(preprocessing=None),
    "explaining no image": lambda: explained(image=None),
    "explaining a number as image": lambda: explained(image=3),
    "explaining a missing image": lambda: explained(image="nowhere.png"),
    "explaining an array of texts": lambda: explained(image=np.array(["x"])),
    "explaining an array of NaN": lambda: explained(image=np.full((24, 24, 3), NAN)),
    "explaining an empty array": lambda: explained(image=np.zeros((0, 24, 3), np.uint8)),
    "explaining a flat array": lambda: explained(image=np.zeros(5, np.uint8)),
    "explaining a batch": lambda: explained(image=torch.zeros(2, 3, 24, 24, dtype=torch.uint8)),
    "explaining an unknown class": lambda: explained(target="cow"),
    "explaining class 9": lambda: explained(target=9),
    "explaining class -9": lambda: explained(target=-9),
    "explaining class 1.5": lambda: explained(target=1.5),
    "explaining a class against itself": lambda: explained(target="cat", versus="cat"),
    "explaining with an unknown keyword": lambda: explained(nothing=3),
    "explaining with 0 players": lambda: explained(players=0),
    "explaining with a text as players": lambda: explained(players="nothing"),
    "explaining with players of another size": lambda: explained(players=pf.Players.windows((8, 8), 4)),
    "explaining with a budget of -1": lambda: explained(budget=-1),
    "explaining with a budget of a text": lambda: explained(budget="x"),
    "explaining with a precision of NaN": lambda: explained(precision=NAN),
    "explaining with a seed of a text": lambda: explained(seed="x"),
    "explaining with a seed of 10^30": lambda: explained(seed=10**30),
    "explaining with an unknown device": lambda: explained(device="nothing"),
    "explaining on meta": lambda: explained(device="meta"),
    "explaining with an unknown baseline": lambda: explained(baseline="nothing"),
    "explaining with an unknown autocast": lambda: explained(autocast="nothing"),
    "explaining with an unknown estimator": lambda: explained(estimator="nothing"),
    "explaining with unknown options": lambda: explained(options={"nothing": 1}),
    "explaining with options of a wrong kind": lambda: explained(options=3),
    # judging
    "aopc of a share of 0": lambda: aopc(torch.zeros(2, 11), 0.0),
    "aopc of a share of 2": lambda: aopc(torch.zeros(2, 11), 2.0),
    "aopc of None": lambda: aopc(None),  # type: ignore[arg-type]
    "aopc of a vector": lambda: aopc(torch.zeros(11)),
    "paper aopc of 0 classes": lambda: paper_aopc(torch.zeros(2, 2), 0, 0),
    "ranks of NaN": lambda: removal_ranks(torch.full((4, 4), NAN)),
    "ranks of None": lambda: removal_ranks(None),  # type: ignore[arg-type]
    "curves of nothing": lambda: removal_curves(lambda x: x, torch.zeros(0, 3, 4, 4), torch.zeros(0, 4, 4), torch.zeros(0), torch.zeros(0, 3, 4, 4)),
    "curves of different lengths": lambda: removal_curves(lambda x: x, torch.zeros(2, 3, 4, 4), torch.zeros(1, 4, 4), torch.zeros(2), torch.zeros(2, 3, 4, 4)),
    "curves of 0 steps": lambda: removal_curves(lambda x: x.sum((1, 2, 3))[:, None], torch.zeros(1, 3, 4, 4), torch.zeros(1, 4, 4), torch.zeros(1).long(), torch.zeros(1, 3, 4, 4), steps=0),
    "truth of another shape": lambda: compare_with_truth(torch.zeros(1, 2), torch.zeros(1, 3)),
    "truth of None": lambda: compare_with_truth(None, torch.zeros(1, 3)),  # type: ignore[arg-type]
    "classification of nothing": lambda: classification(torch.zeros(0, 2), torch.zeros(0), 2),
    "classification of NaN": lambda: classification(torch.full((2, 2), NAN), torch.zeros(2), 2),
    "classification of None": lambda: classification(None, None, 2),  # type: ignore[arg-type]
    "faithfulness of None": lambda: pf.faithfulness(None),  # type: ignore[arg-type]
    "faithfulness of nowhere": lambda: pf.faithfulness("nowhere"),
}  # fmt: skip


def with_run(name: str, call: Callable[[Place], Any]) -> Case:
    return Case(f"python: {name}", call=call)


CASES = [
    *(Case(f"python: {name}", call=lambda place, call=call: call()) for name, call in CALLS.items()),
    with_run(
        "faithfulness with unknown explainers", lambda p: pf.faithfulness(p.run, p / "f", explainers=["x"])
    ),
    with_run(
        "faithfulness with a text as explainers", lambda p: pf.faithfulness(p.run, p / "f", explainers="ours")
    ),
    with_run(
        "faithfulness with prototypes out of range",
        lambda p: pf.faithfulness(p.run, p / "f", prototypes=[99]),
    ),
    with_run(
        "faithfulness with a text as prototypes", lambda p: pf.faithfulness(p.run, p / "f", prototypes="x")
    ),
    with_run(
        "faithfulness on an unknown device", lambda p: pf.faithfulness(p.run, p / "f", device="nothing")
    ),
    with_run("a model on an unknown device", lambda p: pf.Run(p.run).model("nothing")),
    with_run("an explainer of a run on meta", lambda p: pf.Explainer(pf.Run(p.run), device="meta")),
    with_run("pruning all", lambda p: prune_run(pf.Run(p.run), p / "new", list(range(6)))),
    with_run("pruning a text", lambda p: prune_run(pf.Run(p.run), p / "new", "x")),  # type: ignore[arg-type]
]
GOOD: list[Case] = []

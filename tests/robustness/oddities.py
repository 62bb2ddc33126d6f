"""What a stranger with bad intentions, or a colleague in a hurry, tries next: odd files, odd surroundings, odd types."""

from __future__ import annotations

import io
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import protopfaith as pf
from protopfaith.data import (
    Entry,
    ImageSet,
    Listing,
    Preprocessing,
    Record,
    as_size,
    augment,
    contact_sheet,
    load_data,
    load_listing,
    official_split,
    options_of,
    prepare,
)
from protopfaith.evaluation import Explained, check_axioms, share_inside, stability, true_values
from protopfaith.explanation import (
    Settings,
    ShapleyAttribution,
    class_row,
    crop_box,
    decompose,
    explain_files,
    explain_prototypes,
    load_explanation,
    paper_scores,
    protopnet_maps,
)
from protopfaith.moments import rule
from protopfaith.network import (
    FusedProtoPNet,
    distinct_prototypes,
    duplicate_groups,
    equality_tolerance,
    load,
    minimum_over_positions,
    output_channels,
    read_metadata,
    save,
    squared_distances,
)
from protopfaith.shapley import check_estimate, make_baseline, relative_error
from protopfaith.training import (
    Recipe,
    count_distinct,
    load_grid,
    load_recipe,
    prune_run,
    recipe_summary,
    train_folds,
    train_grid,
)
from tests.robustness.harness import Case, Place
from tests.robustness.options import QUICK
from tests.robustness.python_api import IMAGE, INF, NAN, explained, game, model


def fifo(place: Place, name: str) -> Path:
    os.mkfifo(place / name)
    return place / name


def sock(place: Place, name: str) -> Path:
    listener = socket.socket(socket.AF_UNIX)
    before = Path.cwd()
    os.chdir(place.folder)  # the name of a socket is short
    try:
        listener.bind(name)
    finally:
        os.chdir(before)
        listener.close()
    return place / name


def loop(place: Place, name: str) -> Path:
    (place / name).symlink_to(place / name)
    return place / name


def mask(name: str, make: Callable[[Place], Any], says: tuple[str, ...] = ()) -> Case:
    return Case(
        f"explain --mask: {name}",
        lambda p: ["explain", p.run, p.image, *QUICK, "--no-sources", "--mask", make(p), "--out", p / "out"],
        says=says,
    )


def black(place: Place) -> Path:
    Image.new("L", (40, 30)).save(place / "black.png")
    return place / "black.png"


def image(name: str, make: Callable[[Place], Any], command: str = "predict") -> Case:
    return Case(f"{command} {name}", lambda p: [command, p.run, make(p), "--device", "cpu"])


def into(name: str, make: Callable[[Place], Any]) -> list[Case]:
    """A place for results that is none."""
    return [
        Case(
            f"predict --csv into {name}",
            lambda p: ["predict", p.run, p.image, "--device", "cpu", "--csv", make(p)],
        ),
        Case(
            f"explain --out into {name}",
            lambda p: ["explain", p.run, p.image, *QUICK, "--no-sources", "--out", make(p)],
        ),
        Case(
            f"prototypes --out into {name}",
            lambda p: ["prototypes", p.run, "--root", p.images, *QUICK, "--out", make(p)],
        ),
        Case(
            f"train --out into {name}",
            lambda p: ["train", p.copy("tiny.yaml"), "--root", p.images, "--out", make(p)],
        ),
        Case(
            f"data show --out into {name}",
            lambda p: ["data", "show", "birds", "--size", "16", "--out", make(p)],
        ),
    ]


def recipe(name: str, make: Callable[[Place], Any], good: bool = False) -> Case:
    return Case(
        f"train with a recipe: {name}",
        lambda p: ["train", make(p), "--root", p.images, "--out", p / "new"],
        good=good,
    )


def recoded(place: Place, encoding: str, newline: str = "\n") -> Path:
    text = place.copy("tiny.yaml").read_text().replace("\n", newline)
    return place.write("other.yaml", text.encode(encoding))


def groups(name: str, make: Callable[[Place], Any], good: bool = False) -> Case:
    return Case(
        f"train --groups: {name}",
        lambda p: ["train", p.copy("tiny.yaml"), "--root", p.images, "--groups", make(p), "--out", p / "new"],
        good=good,
    )


def group_table(place: Place, encoding: str, newline: str = "\n") -> Path:
    files = sorted(path.relative_to(place.images).as_posix() for path in place.images.rglob("*.png"))
    lines = ["file,group", *(f"{file},g{number // 2}" for number, file in enumerate(files))]
    return place.write("groups.csv", newline.join(lines).encode(encoding))


def folder_with(name: str, make: Callable[[Place], Any], good: bool = False) -> Case:
    def arguments(place: Place) -> list[Any]:
        place.images  # noqa: B018  (is copied)
        make(place)
        return ["data", "prepare", "folder", "--root", place.images, "--size", "24"]

    return Case(f"data prepare folder with {name}", arguments, good=good)


def around(name: str, variables: dict[str, str], good: bool = False, says: tuple[str, ...] = ()) -> Case:
    """Surroundings that are not as they should be."""
    return Case(
        f"predict with {name}",
        lambda p: ["predict", p.run, p.image, "--device", "cpu"],
        environment=variables,
        good=good,
        says=says,
    )


def cached(name: str, value: str, good: bool = False) -> Case:
    return Case(
        f"data prepare with PROTOPFAITH_CACHE {name}",
        lambda p: [p.image, "data", "prepare", "folder", "--root", p.images, "--size", "24"][1:],
        environment={"PROTOPFAITH_CACHE": value},
        good=good,
    )


CALLS: dict[str, Callable[[], Any]] = {
    # explanations of odd images
    "explaining bytes": lambda: explained(image=b"\x89PNG"),
    "explaining an open file": lambda: explained(image=io.BytesIO(b"\x89PNG")),
    "explaining a list of paths": lambda: explained(image=["a.png"]),
    "explaining a complex tensor": lambda: explained(image=torch.zeros(3, 24, 24, dtype=torch.complex64)),
    "explaining a tensor without memory": lambda: explained(image=torch.zeros(3, 24, 24, device="meta")),
    "explaining a sparse tensor": lambda: explained(image=torch.zeros(3, 24, 24).to_sparse()),
    "explaining an array of complex numbers": lambda: explained(image=np.zeros((24, 24, 3), complex)),
    "explaining an array of objects": lambda: explained(image=np.full((24, 24, 3), None)),
    "explaining an array of dates": lambda: explained(image=np.zeros((24, 24, 3), "datetime64[s]")),
    "explaining five dimensions": lambda: explained(image=torch.zeros(1, 1, 3, 24, 24)),
    "explaining infinity": lambda: explained(image=torch.full((3, 24, 24), INF)),
    "explaining /dev/zero": lambda: explained(image="/dev/zero"),
    "explaining a NUL in a name": lambda: explained(image="a\0b.png"),
    "explaining a surrogate in a name": lambda: explained(image="a\udcff.png"),
    # settings of odd types
    "a class that is a bool": lambda: explained(target=True),
    "a class that is bytes": lambda: explained(target=b"cat"),
    "a class that is a list": lambda: explained(target=["cat"]),
    "a class that is NaN": lambda: explained(target=NAN),
    "a mask of NaN": lambda: explained(mask=torch.full((24, 24), NAN)),
    "a mask of three dimensions": lambda: explained(mask=torch.ones(3, 24, 24)),
    "an empty mask": lambda: explained(mask=torch.zeros(0, 0)),
    "a mask that is a list": lambda: explained(mask=[[1]]),
    "a mask that is not there": lambda: explained(mask="nowhere.png"),
    "a mask that is a number": lambda: explained(mask=3),
    "a true class that does not exist": lambda: explained(true_class="cow"),
    "a true class that is a float": lambda: explained(true_class=0.5),
    "settings that are a dict": lambda: explained(settings={"budget": 3}),
    "players that are a bool": lambda: Settings(players=True),
    "players that are NaN": lambda: Settings(players=NAN),  # type: ignore[arg-type]
    "players that are a list": lambda: Settings(players=[1, 2]),  # type: ignore[arg-type]
    "players of floats in a tensor": lambda: explained(players=torch.rand(24, 24)),
    "a budget that is a bool": lambda: Settings(budget=True),
    "a budget that is infinite": lambda: Settings(budget=INF),  # type: ignore[arg-type]
    "a precision that is a text": lambda: Settings(precision="0.1"),  # type: ignore[arg-type]
    "a precision that is complex": lambda: Settings(precision=1j),  # type: ignore[arg-type]
    "a memory that is a text": lambda: Settings(memory="1 GB"),  # type: ignore[arg-type]
    "a batch that is a float": lambda: Settings(batch_size=2.5),  # type: ignore[arg-type]
    "a batch of 0": lambda: explained(batch_size=0),
    "a memory of -1": lambda: explained(memory=-1),
    "an output that is a number": lambda: Settings(output=3),  # type: ignore[arg-type]
    "a baseline that is a dict": lambda: explained(baseline={}),
    "a baseline that is an empty list": lambda: explained(baseline=[]),
    "a baseline that is a bool": lambda: explained(baseline=True),
    "an estimator that is a function": lambda: explained(estimator=print),
    "sources that are a text": lambda: Settings(sources="no"),  # type: ignore[arg-type]
    "a tolerance that is NaN": lambda: Settings(duplicate_tolerance=NAN),
    "a source budget of 0": lambda: Settings(source_budget=0),
    # many files
    "files that are one text": lambda: explain_files(model(), "abc.png", "/tmp/never", preprocessing=Preprocessing((24, 24))),
    "files that are None": lambda: explain_files(model(), None, "/tmp/never", preprocessing=Preprocessing((24, 24))),  # type: ignore[arg-type]
    "files that are a number": lambda: explain_files(model(), 3, "/tmp/never", preprocessing=Preprocessing((24, 24))),  # type: ignore[arg-type]
    "files that hold None": lambda: explain_files(model(), [None], "/tmp/never", preprocessing=Preprocessing((24, 24))),  # type: ignore[list-item]
    "files into None": lambda: explain_files(model(), [], None, preprocessing=Preprocessing((24, 24))),  # type: ignore[arg-type]
    "figures of an unknown kind": lambda: explain_files(model(), [], "/tmp/never", figures=["exe"], sources=False, preprocessing=Preprocessing((24, 24))),
    "figures that are numbers": lambda: explain_files(model(), [], "/tmp/never", figures=[3], sources=False, preprocessing=Preprocessing((24, 24))),  # type: ignore[list-item]
    # what was computed
    "an explanation of None": lambda: load_explanation(None),  # type: ignore[arg-type]
    "an explanation of a folder": lambda: load_explanation("/"),
    "an explanation of /dev/null": lambda: load_explanation("/dev/null"),
    "an attribution of None": lambda: pf.Attribution.load(None),  # type: ignore[arg-type]
    "an attribution of a folder": lambda: pf.Attribution.load("/"),
    "decomposing another number of distances": lambda: decompose(model(), torch.zeros(7), 0),
    "decomposing None": lambda: decompose(model(), None, 0),  # type: ignore[arg-type]
    "decomposing for a class that is not there": lambda: decompose(model(), torch.zeros(4), 9),
    "scores of another number of distances": lambda: paper_scores(model(), torch.zeros(7), 0),
    "a row of a class that is not there": lambda: class_row(model(), 9, None),
    "a box of a vector": lambda: crop_box(torch.zeros(5)),
    "a box of NaN": lambda: crop_box(torch.full((4, 4), NAN)),
    "maps of a vector": lambda: protopnet_maps(model(), torch.zeros(5), (24, 24)),
    "a share of another size": lambda: share_inside(torch.zeros(4, 4), torch.zeros(3, 3, dtype=torch.bool)),
    "a share of numbers": lambda: share_inside(torch.zeros(4, 4), torch.ones(4, 4)),
    "a relative error of None": lambda: relative_error(None, None),  # type: ignore[arg-type]
    "truth of no budget": lambda: true_values(game(players=pf.Players.windows((24, 24), 4)), 0),
    "truth of None as game": lambda: true_values(None, 64),  # type: ignore[arg-type]
    "checking None": lambda: check_estimate(None, "owen"),  # type: ignore[arg-type]
    "a baseline of a vector": lambda: make_baseline("blur:2", torch.zeros(5)),
    "axioms of None": lambda: check_axioms(None, model(), IMAGE, (0, 1), None),  # type: ignore[arg-type]
    "stability of None": lambda: stability(None, model(), IMAGE, [0], None),  # type: ignore[arg-type]
    "Captum's interface with None": lambda: ShapleyAttribution(None).attribute(IMAGE[None]),  # type: ignore[arg-type]
    "Captum's interface with no image": lambda: ShapleyAttribution(model()).attribute(None),  # type: ignore[arg-type]
    "maps that are a list": lambda: Explained([1], shares=True).values(pf.Players.windows((4, 4), 2)),  # type: ignore[arg-type]
    # networks
    "distances of None": lambda: squared_distances(None, torch.zeros(2, 3)),  # type: ignore[arg-type]
    "distances of other channels": lambda: squared_distances(torch.zeros(1, 4, 2, 2), torch.zeros(2, 3)),
    "distances of a flat tensor": lambda: squared_distances(torch.zeros(4), torch.zeros(2, 3)),
    "a minimum of a vector": lambda: minimum_over_positions(torch.zeros(3)),
    "distinct prototypes of None": lambda: distinct_prototypes(None),  # type: ignore[arg-type]
    "distinct prototypes at NaN": lambda: distinct_prototypes(model(), NAN),
    "groups of different lengths": lambda: duplicate_groups(torch.zeros(3, 2), torch.zeros(2)),
    "a tolerance of a text": lambda: equality_tolerance("x"),  # type: ignore[arg-type]
    "counting None": lambda: count_distinct(None),  # type: ignore[arg-type]
    "a fused None": lambda: FusedProtoPNet(None),  # type: ignore[arg-type]
    "channels of None": lambda: output_channels(None, 3),  # type: ignore[arg-type]
    "loading bytes": lambda: load(b"model"),  # type: ignore[arg-type]
    "loading /dev/zero": lambda: load("/dev/zero"),
    "metadata of an empty name": lambda: read_metadata(""),
    "saving None": lambda: save(None, "/tmp/never/x"),  # type: ignore[arg-type]
    "saving to None": lambda: save(model(), None),  # type: ignore[arg-type]
    "a rule for nothing that torch has": lambda: rule("no_such_function"),
    "a rule for a number": lambda: rule(3),  # type: ignore[arg-type]
    # data
    "a size that is a bool": lambda: as_size(True, 24),
    "a size that is NaN": lambda: as_size(NAN, 24),  # type: ignore[arg-type]
    "options of None": lambda: options_of(None),  # type: ignore[arg-type]
    "preparing None": lambda: prepare(None),  # type: ignore[arg-type]
    "a root of bytes": lambda: load_data("folder", root=b"images"),  # type: ignore[arg-type]
    "a root that is a list": lambda: load_data("folder", root=["images"]),  # type: ignore[arg-type]
    "a listing of nothing": lambda: load_listing(Listing("x", Path("/"), (), ()), lambda k: [], Preprocessing((8, 8)), skip_unreadable=False, split_name="x"),
    "a listing that points outside": lambda: load_listing(Listing("x", Path("/"), (Entry("../etc/passwd", "a"),), ("a",)), lambda k: official_split(k, None, 0), Preprocessing((8, 8)), skip_unreadable=False, split_name="x"),
    "a listing of a missing file": lambda: load_listing(Listing("x", Path("/nowhere"), (Entry("a.png", "a"),), ("a",)), lambda k: official_split(k, None, 0), Preprocessing((8, 8)), skip_unreadable=False, split_name="x"),
    "an image set of too few pixels": lambda: ImageSet(np.zeros((1, 3, 8, 8), np.uint8), [Record("a", 0, "1"), Record("b", 0, "2")], ["x"]),
    "an image set of floats": lambda: ImageSet(np.zeros((1, 3, 8, 8)), [Record("a", 0, "1")], ["x"]),
    "an image set of a class that is not there": lambda: ImageSet(np.zeros((1, 3, 8, 8), np.uint8), [Record("a", 7, "1")], ["x"]),
    "augmenting None": lambda: augment(None, None, None),  # type: ignore[arg-type, call-arg]
    "a sheet of None": lambda: contact_sheet(None, "/tmp/never.png"),  # type: ignore[arg-type]
    # training
    "folds of None": lambda: train_folds(None, "/tmp/never/x"),  # type: ignore[arg-type]
    "no folds": lambda: train_folds(Recipe(), "/tmp/never/x", []),
    "folds as a text": lambda: train_folds(Recipe(), "/tmp/never/x", "01"),  # type: ignore[arg-type]
    "no folds at once": lambda: train_folds(Recipe(), "/tmp/never/x", at_once=0),
    "folds at once as a text": lambda: train_folds(Recipe(), "/tmp/never/x", at_once="2"),  # type: ignore[arg-type]
    "folds into None": lambda: train_folds(Recipe(), None),  # type: ignore[arg-type]
    "a grid of None": lambda: train_grid(None, "/tmp/never/x"),  # type: ignore[arg-type]
    "a grid of a folder": lambda: load_grid("/"),
    "a summary of None": lambda: recipe_summary(None),  # type: ignore[arg-type]
    "overrides that are a dict": lambda: load_recipe("birds", {"seed": 3}),  # type: ignore[arg-type]
    "overrides of bytes": lambda: load_recipe("birds", [b"seed=3"]),  # type: ignore[list-item]
    "training into a number": lambda: pf.train(Recipe(), 3),  # type: ignore[arg-type]
    "training on data that are a folder": lambda: pf.train(Recipe(), "/tmp/never/x", data="images", progress=False),  # type: ignore[arg-type]
    "training of a model that is a name": lambda: pf.train(Recipe(), "/tmp/never/x", model="small", progress=False),  # type: ignore[arg-type]
}  # fmt: skip


def with_run(name: str, call: Callable[[Place], Any]) -> Case:
    return Case(f"python: {name}", call=call)


PLACES = {
    "a pipe": lambda p: fifo(p, "pipe"),
    "a socket": lambda p: sock(p, "socket"),
    "a link to itself": lambda p: loop(p, "loop"),
    "a place under a link to itself": lambda p: loop(p, "loop") / "x",
    "a name with NUL": lambda p: "a\0b",
}
CASES: list[Case] = [
    mask("missing", lambda p: p / "nowhere.png", ("nowhere.png",)),
    mask("a text", lambda p: p.write("mask.png", "no image"), ("mask.png",)),
    mask("black", black, ("mask",)),
    mask("a folder", lambda p: p.images),
    mask("a pipe", lambda p: fifo(p, "mask.png")),
    mask("/dev/zero", lambda p: "/dev/zero"),
    mask("an empty name", lambda p: ""),
    image("/dev/zero", lambda p: "/dev/zero"),
    image("/dev/zero", lambda p: "/dev/zero", "explain"),
    image("a socket", lambda p: sock(p, "x.png")),
    image("a socket", lambda p: sock(p, "x.png"), "explain"),
    image("a folder named like an image", lambda p: (p / "x.png").mkdir() or p / "x.png"),
    image("a name with NUL", lambda p: "a\0b.png"),
    image("a folder of pipes", lambda p: [(p / "d").mkdir(), fifo(p, "d/x.png")] and p / "d"),
    *(case for name, make in PLACES.items() for case in into(name, make)),
    recipe("UTF-16", lambda p: recoded(p, "utf-16")),
    recipe("UTF-32", lambda p: recoded(p, "utf-32")),
    recipe("Latin-1 with umlauts", lambda p: p.write("x.yaml", "data: {name: vögel}".encode("latin-1"))),
    recipe("a pipe", lambda p: fifo(p, "x.yaml")),
    recipe("/dev/zero", lambda p: "/dev/zero"),
    recipe("a socket", lambda p: sock(p, "x.yaml")),
    recipe("a link to itself", lambda p: loop(p, "x.yaml")),
    recipe("an image", lambda p: p.copy("good.png", "x.yaml")),
    recipe("NUL in the middle", lambda p: p.write("x.yaml", b"seed: 3\0\n")),
    recipe("tabs", lambda p: p.write("x.yaml", "data:\n\tname: folder\n")),
    groups("missing", lambda p: p / "nowhere.csv"),
    groups("a folder", lambda p: p.images),
    groups("a pipe", lambda p: fifo(p, "groups.csv")),
    groups("/dev/zero", lambda p: "/dev/zero"),
    groups("UTF-16", lambda p: group_table(p, "utf-16")),
    groups("empty", lambda p: p.write("groups.csv", "")),
    groups("an image", lambda p: p.image),
    folder_with("a socket as image", lambda p: sock(p, "images/red/x.png") and None, good=True),
    folder_with("a pipe as image", lambda p: fifo(p, "images/red/x.png") and None, good=True),
    folder_with("a link to itself as image", lambda p: loop(p, "images/red/x.png") and None),
    folder_with("a link to itself as class", lambda p: loop(p, "images/zebra") and None, good=True),
    folder_with(
        "a link to its own parent", lambda p: (p / "images/red/up").symlink_to(p / "images"), good=True
    ),
    folder_with("an empty file as image", lambda p: p.write("images/red/x.png", b"")),
    around("PROTOPFAITH_MAX_PIXELS x", {"PROTOPFAITH_MAX_PIXELS": "x"}, says=("PROTOPFAITH_MAX_PIXELS",)),
    around("PROTOPFAITH_MAX_PIXELS -1", {"PROTOPFAITH_MAX_PIXELS": "-1"}, says=("PROTOPFAITH_MAX_PIXELS",)),
    around("PROTOPFAITH_MAX_PIXELS nan", {"PROTOPFAITH_MAX_PIXELS": "nan"}, says=("PROTOPFAITH_MAX_PIXELS",)),
    around("PROTOPFAITH_MAX_PIXELS 10", {"PROTOPFAITH_MAX_PIXELS": "10"}, says=("PROTOPFAITH_MAX_PIXELS",)),
    around("PROTOPFAITH_IMPORT nothing", {"PROTOPFAITH_IMPORT": "no_such"}, says=("no_such",)),
    cached("a device", "/dev/null/x"),
    cached("a file", "good.png/x"),
    cached("a name with 5,000 letters", "x" * 5000),
    *(Case(f"python: {name}", call=lambda place, call=call: call()) for name, call in CALLS.items()),
    with_run(
        "prototypes with nearest -1", lambda p: explain_prototypes(p.run, nearest=-1, players=12, budget=64)
    ),
    with_run(
        "prototypes with nearest x", lambda p: explain_prototypes(p.run, nearest="x", players=12, budget=64)
    ),  # type: ignore[arg-type]
    with_run(
        "prototypes with a survey of 0",
        lambda p: explain_prototypes(p.run, survey_batch=0, players=12, budget=64),
    ),
    with_run("a run of bytes", lambda p: pf.Run(os.fsencode(p.run))),  # type: ignore[arg-type]
    with_run("pruning floats", lambda p: prune_run(pf.Run(p.run), p / "new", [0.5])),  # type: ignore[list-item]
    with_run("pruning NaN", lambda p: prune_run(pf.Run(p.run), p / "new", [NAN])),  # type: ignore[list-item]
    with_run("pruning into None", lambda p: prune_run(pf.Run(p.run), None, [0])),  # type: ignore[arg-type]
    with_run(
        "faithfulness with limits that are a list", lambda p: pf.faithfulness(p.run, p / "f", limits=[1])
    ),  # type: ignore[arg-type]
    with_run("faithfulness with steps of NaN", lambda p: pf.faithfulness(p.run, p / "f", steps=NAN)),  # type: ignore[arg-type]
    with_run("faithfulness into a number", lambda p: pf.faithfulness(p.run, 3)),  # type: ignore[arg-type]
    with_run("faithfulness with no prototypes", lambda p: pf.faithfulness(p.run, p / "f", prototypes=[])),
    with_run("faithfulness with no explainers", lambda p: pf.faithfulness(p.run, p / "f", explainers=[])),
]
GOOD: list[Case] = [
    recipe("a byte order mark", lambda p: recoded(p, "utf-8-sig"), good=True),
    recipe("CRLF", lambda p: recoded(p, "utf-8", "\r\n"), good=True),
    groups("a byte order mark and CRLF", lambda p: group_table(p, "utf-8-sig", "\r\n"), good=True),
    around("COLUMNS 0", {"COLUMNS": "0"}, good=True),
    around("COLUMNS x", {"COLUMNS": "x"}, good=True),
    around("TERM dumb", {"TERM": "dumb"}, good=True),
    around("no PROTOPFAITH_MAX_PIXELS", {"PROTOPFAITH_MAX_PIXELS": ""}, good=True),
    Case("python: NumPy's numbers", call=lambda p: explained(budget=np.int64(64), players=np.int64(12), seed=np.int32(3), precision=np.float32(0.5), target=np.int64(0)), good=True),
    Case("python: NumPy's texts", call=lambda p: explained(target=np.str_("cat"), baseline=np.str_("zero"), estimator=np.str_("owen")), good=True),
    Case("python: a tensor with a gradient", call=lambda p: explained(image=torch.rand(3, 24, 24, requires_grad=True)), good=True),
    Case("python: a boolean array", call=lambda p: explained(mask=np.ones((24, 24), bool)), good=True),
    Case("python: a double tensor", call=lambda p: explained(image=torch.rand(3, 24, 24, dtype=torch.float64)), good=True),
    Case("python: folds of NumPy's numbers", call=lambda p: load_data("birds", size=16, train=8, validation=8, test=8, seed=np.int64(3)), good=True),
]  # fmt: skip
BAD_THAT_ARE_GOOD = [case for case in CASES if case.good]
CASES = [case for case in CASES if not case.good]
GOOD += BAD_THAT_ARE_GOOD

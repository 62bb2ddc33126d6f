"""Benchmarks run on a tiny network: what they print is about that network, not whether it is fast."""

from __future__ import annotations

import ast
import csv
import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from protopfaith.data import Preprocessing
from protopfaith.network import ProtoPNet, save
from protopfaith.shapley import Game, Players
from protopfaith.training import Run, load_recipe, train

FOLDER = Path(__file__).parents[2] / "benchmarks"
Printed = Callable[..., str]


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """What a benchmark prints; in this process, since loading torch takes as long as the benchmark."""

    def of(name: str, *arguments: str | Path) -> str:
        importlib.import_module(name).main([str(argument) for argument in arguments])
        return capsys.readouterr().out

    return of


def test_explaining_tells_what_a_user_waits_for(run: Run, printed: Printed) -> None:
    text = printed("explaining", run.folder, "--images", "2", "--budget", "100", "--autocast", "bfloat16")
    assert "maps on the sources of" in text
    assert "image 1: " in text
    rows = {
        parts[1].strip(): parts[2:] for parts in (line.split("│") for line in text.splitlines()) if parts[1:]
    }
    assert rows["evaluations"][0].strip() == "100"
    assert min(float(rows[name][0]) for name in ("explanation", "as many plain forward passes")) >= 0
    assert rows["totals changed by rounding, worst map"][0].strip() != "0.0%"


def test_explaining_without_sources(run: Run, printed: Printed) -> None:
    text = printed("explaining", run.folder, "--images", "1", "--budget", "100", "--no-sources")
    assert "maps on the sources" not in text
    assert "image 0: " in text
    assert "as many plain forward passes" in text


def test_agreement_prints_and_writes_as_it_goes(run: Run, tmp_path: Path, printed: Printed) -> None:
    """Nine players: the reference is exact. Captum and shapiq are left to larger runs."""
    plan = ["--images", "2", "--prototypes", "2", "--budgets", "200,256", "--reference", "512"]
    small = ["--sizes", "3", "--nodes", "8", "--dasp-images", "1", "--no-rivals"]
    text = printed("agreement", run.folder, *plan, *small, "--csv", tmp_path / "table.csv")
    assert "2 images, 2 outputs each (class), 9 players" in text
    assert "54 moment passes" in text  # 2 x 3 sizes x 9 players
    for number in (0, 1):
        for name in ("reference", "adaptive_owen", "owen", "kernel", "permutation", "moment_path"):
            assert f"image {number} {name}: " in text
    assert "image 0 dasp: " in text
    assert "image 1 dasp: " not in text
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    # By image: two sampling estimators at two budgets, two at one, moment_path; dasp on one image alone.
    assert len(rows) == 2 * 2 * 7 + 2
    assert {row["reliability"] for row in rows} == {"1.0"}
    sampled = [row for row in rows if row["estimator"] == "owen" and row["evaluations"] == "256"]
    assert min(float(row["correlation"]) for row in sampled) > 0.5
    again = printed("agreement", "--read", tmp_path / "table.csv")
    assert again.split("reliability")[1] == text.split("reliability")[-1]


def test_agreement_on_images_of_an_array(run: Run, tmp_path: Path, printed: Printed) -> None:
    """The same images as the run's own give the same table; no data set is opened."""
    test = run.data().test
    first, last = 0, len(test) - 1  # what a run is judged on when two images are asked for
    np.save(tmp_path / "images.npy", torch.stack([test.image(first), test.image(last)]).numpy())
    some = ["--images", "2", "--prototypes", "2", "--budgets", "256", "--estimators", "owen", "--no-rivals"]
    array = ["--checkpoint", run.model_path, "--data", "nowhere", "--array", tmp_path / "images.npy"]
    found = {}
    for name, subject in {"run": [run.folder], "array": array}.items():
        printed("agreement", *subject, *some, "--reference", "512", "--csv", tmp_path / f"{name}.csv")
        with (tmp_path / f"{name}.csv").open(newline="") as file:
            found[name] = [float(row["correlation"]) for row in csv.DictReader(file)]
    assert len(found["array"]) == 2 * 2  # images, prototypes
    assert found["array"] == pytest.approx(found["run"])


@pytest.mark.parametrize(
    ("method", "said"),
    [("owen", "plain Owen sampling"), ("allocated", "sizes drawn"), ("unshrunk", "WITHOUT SHRINKAGE")],
)
def test_agreement_says_what_its_reference_is(
    method: str, said: str, run: Run, tmp_path: Path, printed: Printed
) -> None:
    """36 players: too many for an exact one."""
    some = ["--images", "1", "--prototypes", "1", "--players", "8", "--no-rivals", "--estimators", "owen"]
    kind = ["--budgets", "256", "--reference", "1024", "--reference-method", method]
    text = printed("agreement", run.folder, *some, *kind, "--csv", tmp_path / "table.csv")
    words = " ".join(text.split())
    assert "reference: 2 x 512 evaluations of " in words
    assert said in words.split("reference: 2 x 512", 1)[1]
    with (tmp_path / "table.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert 0 < float(row["reliability"]) < 1  # of two halves that were really drawn
    assert float(row["correlation"]) > 0.5


def test_agreement_on_any_function_ends_in_time(
    tmp_path: Path, printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the default estimator's parts, and a picture."""
    lines = [
        "import torch",
        "def make():",
        "    images = torch.arange(2 * 48.0).reshape(2, 3, 4, 4)",
        "    return (lambda x: torch.stack([x.sum((1, 2, 3)), x.amax((1, 2, 3))], 1)), images",
    ]
    (tmp_path / "own_function.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    files = ["--csv", tmp_path / "table.csv", "--plot", tmp_path / "plot.png"]
    some = [
        "--estimators",
        "owen",
        "--budgets",
        "64,128",
        "--reference",
        "512",
        "--players",
        "1",
        "--no-rivals",
    ]
    text = printed(
        "agreement", "--factory", "own_function:make", *some, "--ablation", "--limit", "1e-9", *files
    )
    assert "2 images, 2 outputs each (total), 16 players" in text
    assert "no time is left for another one" in text
    assert "reference: 2 x 256 evaluations of plain Owen sampling" in text
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["image"] for row in rows} == {"0"}
    assert len({row["estimator"] for row in rows}) == 1 + 6  # owen, and the parts


def test_throughput_compares_with_plain_passes(printed: Printed) -> None:
    tiny = ["--outputs", "3", "--evaluations", "34", "--estimators", "owen", "--repeats", "1"]
    text = printed("throughput", *tiny)
    assert "3 outputs at once" in text
    rows = {parts[1].strip(): parts for parts in (line.split("│") for line in text.splitlines()) if parts[1:]}
    assert [rows["owen"][2].strip(), float(rows["owen"][4]) > 0] == ["34", True]
    assert any(name.startswith("plain forward passes, batches of ") for name in rows)


def test_moments_sees_a_picture_as_the_checkpoint_does(tmp_path: Path) -> None:
    """One channel, a size and statistics of its own; without a checkpoint it is ImageNet's."""
    moments = importlib.import_module("moments")
    own = Preprocessing((24, 32), 1, (0.25,), (0.5,))
    save(
        ProtoPNet("small", 2, 1, 8, in_channels=1),
        tmp_path / "net.safetensors",
        {"preprocessing": own.to_dict()},
    )
    pixels = np.random.default_rng(0).integers(0, 256, (40, 30, 3), dtype=np.uint8)
    image = Image.fromarray(pixels)
    image.save(tmp_path / "bird.png")

    def seen(*arguments: str) -> torch.Tensor:
        args = moments.parse(["--image", str(tmp_path / "bird.png"), *arguments])
        return moments.picture(args, moments.preprocessing(args))

    checkpoint = ["--checkpoint", str(tmp_path / "net.safetensors")]
    assert torch.equal(seen(*checkpoint), own(image))
    assert torch.equal(seen(*checkpoint, "--size", "16"), replace(own, size=(16, 16))(image))
    assert torch.equal(seen(), Preprocessing((224, 224))(image))
    args = moments.parse(checkpoint)
    assert moments.picture(args, moments.preprocessing(args)).shape == (1, 24, 32)


def test_moments_on_windows_of_any_size(printed: Printed) -> None:
    text = printed("moments", "--small", "--only", "path")
    assert "moment_path, 5 prototypes, 64 players" in text
    assert "8 nodes: " in text


def test_turns_interleave_what_is_timed() -> None:
    done: list[str] = []
    works = [lambda name=name: done.append(name) for name in "ab"]
    ticks = iter(range(100))
    turns = importlib.import_module("opening").in_turns(works, torch.device("cpu"), 3, lambda: next(ticks))
    assert "".join(done) == "ababab"
    assert turns == [[1, 1]] * 3


@pytest.mark.parametrize("autocast", [None, torch.bfloat16])
def test_plain_passes_are_those_of_the_game(autocast: torch.dtype | None) -> None:
    """As many images, in the same batches and number format, and no gradients."""
    seen: list[tuple[int, torch.dtype, bool]] = []

    def function(images: torch.Tensor) -> torch.Tensor:
        weights = torch.ones(4, 2, requires_grad=True)
        values = images.flatten(1) @ weights
        seen.append((len(images), values.dtype, values.requires_grad))
        return values

    game = Game(
        function,
        torch.rand(1, 2, 2),
        Players.windows((2, 2), 1),
        batch_size=3,
        autocast=autocast,
        check=False,
    )
    opening = importlib.import_module("opening")
    seen.clear()
    opening.plain_passes(game, 8)()
    kind = autocast or torch.float32
    assert seen == [(3, kind, False), (3, kind, False), (2, kind, False)]
    assert opening.plain_rate(game, repeats=2) > 0
    assert {count for count, _, _ in seen[3:]} == {3}  # whole batches


def test_the_speed_of_libraries_counts_every_output() -> None:
    """They take one output at a time: 100 evaluations for each of two are 200 passes."""
    tables = importlib.import_module("agreement_table")
    values = torch.randn(2, 9, dtype=torch.float64)
    truth = tables.Reference(values, torch.zeros_like(values), [1.0, 1.0], 0.0)
    result = tables.Measured(values, torch.full_like(values, torch.nan), evaluations=200, seconds=2.0)
    rows = tables.compare(result, truth, image=0, name="a library", budget=100, rate=50.0)
    assert [(row.evaluations, row.speed) for row in rows] == [(100, 2.0)] * 2


def test_fused_compares_the_network_with_its_fused_kernels(printed: Printed) -> None:
    said = printed("fused", "--encoder", "small", "--size", "32", "--batch-size", "2", "--repeats", "1")
    assert "fused" in said
    assert "of the limit" in said


def test_speaking_for_has_the_outputs_that_a_map_may_explain(run: Run, printed: Printed) -> None:
    assert "logit minus mean of all" in printed("speaking_for", run.folder, "--images", "4")
    speaking_for = importlib.import_module("speaking_for")

    logits, empty = torch.tensor([[5.0, 4.0], [6.0, 0.0]]), torch.tensor([[4.0, 4.5]])
    totals = {
        name: of(logits, torch.tensor([0, 0])) - of(empty.expand(2, -1), torch.tensor([0, 0]))
        for name, of in speaking_for.OUTPUTS.items()
    }
    assert totals["logit"].tolist() == [1.0, 2.0]
    assert totals["logit minus mean of all"].tolist() == pytest.approx([0.5 + 0.25, 3.0 + 0.25])
    assert totals["log odds"].tolist() == pytest.approx([1.5, 6.5])


def test_reporting_times_every_page(printed: Printed) -> None:
    text = printed("reporting", "--size", "48", "--prototypes", "1", "--repeats", "2")
    for what in ("report", "index of one case", "figure"):
        assert what in text


def test_bulk_counts_and_simulates(run: Run, tmp_path: Path, printed: Printed) -> None:
    pytest.importorskip("pyarrow")
    Image.new("RGB", (32, 32), "red").save(tmp_path / "red.png")
    plan = ["--players", "16", "--budget", "96", "--workers", "--memory", "4", "--total", "2000"]
    text = printed("bulk", run.folder, tmp_path / "red.png", *plan)
    assert "images per second" in text
    assert "peak of memory" in text
    assert "2,000 images" in text


def test_bulk_simulates_what_was_measured_elsewhere(printed: Printed) -> None:
    perfect = ["--spread", "0", "--stragglers", "0", "--deaths", "0", "--seconds", "0", "--total", "6400"]
    rows = [line.split("│") for line in printed("bulk", "--simulate", "3.6", *perfect).splitlines()]
    hours = {row[1].strip(): row[2].strip() for row in rows if len(row) > 4}
    assert (hours["1"], hours["64"]) == ("6.4", "0.1")


def test_precision_tells_what_is_saved(run: Run, tmp_path: Path, printed: Printed) -> None:
    pytest.importorskip("pyarrow")
    Image.new("RGB", (32, 32), "red").save(tmp_path / "red.png")
    text = printed("precision", run.folder, tmp_path, "--players", "4", "--limits", "600", "--most", "700")
    assert "red.png: " in text
    assert "precision 0.1" in text


def test_precision_stops_where_it_is_reached() -> None:
    precision = importlib.import_module("precision")
    budgets = np.array([100, 200, 400])
    errors = np.array([[0.1, 0.07, 0.05], [0.4, 0.3, 0.2], [0.2, 0.1, 0.05]])
    found = precision.with_precision(budgets, errors, 0.1, limit=300)
    assert found.evaluations == pytest.approx((100 + 200 + 200) / 3)
    assert found.mean == pytest.approx((0.1 + 0.3 + 0.1) / 3)
    assert found.reached == pytest.approx(2 / 3)
    assert precision.fixed(budgets, errors, 400).mean == pytest.approx(0.1)
    assert precision.budget_for(budgets, errors.mean(0), float(errors[:, 1].mean())) == pytest.approx(200)
    assert np.isnan(precision.budget_for(budgets, errors.mean(0), 1e-9))


def test_serving_answers_everything(run: Run, printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many streams are open soon afterwards depends on the machine; that they end is tested elsewhere."""
    pytest.importorskip("uvicorn")
    visitor = importlib.import_module("serving").Visitor
    watch = visitor.watch
    monkeypatch.setattr(visitor, "watch", lambda self, case, start, _: watch(self, case, start, 0.2))
    short = ("--seconds", "0.5", "--alone", "0.5", "--rest", "1.5", "--visitors", "2")
    text = printed("serving", run.folder, *short)
    assert "no answer: 0" in text
    assert "open streams in the end: " in text
    assert "decision: median" in text


def test_findings_are_judged_by_the_part_that_shows_them(tmp_path: Path, printed: Printed) -> None:
    small = ["data.size=[32,32]", "data.options={train: 48, validation: 32, test: 32}"]
    short = ["schedule.cycles=1", "schedule.pretraining.epochs=0", "schedule.warmup.epochs=1"]
    short += ["schedule.joint.epochs=1", "schedule.classifier.epochs=1"]
    train(load_recipe("birds_multilabel", small + short), tmp_path / "run", progress=False)
    text = printed("finding_parts", tmp_path / "run", "--images", "2", "--players", "16", "--budget", "32")
    assert "occurrence map" in text
    assert "chance" in text


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_what_benchmarks_take_from_the_package_is_there(path: Path) -> None:
    """Most of them take too long to be run here, and a name that moved would be noticed late."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("protopfaith"):
            module = importlib.import_module(node.module)
            for name in node.names:
                assert hasattr(module, name.name) or importlib.util.find_spec(f"{node.module}.{name.name}")

from __future__ import annotations

import copy
import shutil
from pathlib import Path

import pytest
import torch
from PIL import Image

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer, Explanation, explain_files, load_explanation
from protopfaith.explanation.case_files import write_case

QUICK = {"budget": 96, "players": 24, "figures": ()}


def test_the_rest_is_done_when_one_fails(explainer: Explainer, bird_file: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"\xff\xd8 not an image")
    copy = shutil.copy(bird_file, tmp_path / "other.png")
    done = explain_files(
        explainer, [bird_file, broken, tmp_path / "gone.png", copy], tmp_path / "out", **QUICK
    )  # type: ignore[arg-type]
    assert [failure.path.name for failure in done.failures] == ["broken.jpg", "gone.png"]
    assert "cannot be read" in done.failures[0].message
    assert len(done.cases) == 2
    for case in done.cases:
        assert {path.name for path in case.iterdir()} == {
            "explanation.json",
            "explanation.npz",
            "report.html",
        }
    page = done.index.read_text()
    assert "broken.jpg" in page
    assert all(f"{case.name}/report.html" in page for case in done.cases)
    assert load_explanation(done.cases[0] / "explanation.json").original_size == (60, 100)


def test_finished_cases_are_not_done_again(explainer: Explainer, bird_file: Path, tmp_path: Path) -> None:
    seen: list[tuple[Path, Explanation | None]] = []

    def call(**options: object) -> None:
        explain_files(
            explainer, [bird_file], tmp_path, on_case=lambda *one: seen.append(one), **{**QUICK, **options}
        )  # type: ignore[arg-type]

    call()
    call()
    call(seed=1)
    call(target=2)
    fresh = [case for case, found in seen if found is not None]
    assert [found is None for _, found in seen] == [False, True, False, False]
    assert len(set(fresh)) == 3


def test_figures_can_be_asked_for_later(
    explainer: Explainer, bird_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = {**QUICK, "sources": False}
    (case,) = explain_files(explainer, [bird_file], tmp_path, **plain).cases  # type: ignore[arg-type]
    before = {path: path.stat().st_mtime_ns for path in case.iterdir()}
    monkeypatch.setattr(Explainer, "explain", None)  # nothing is computed again
    again = explain_files(explainer, [bird_file], tmp_path, **{**plain, "figures": ("svg",)})  # type: ignore[arg-type]
    assert again.cases == (case,)
    assert (case / "figure.svg").stat().st_size > 1000
    assert {path: path.stat().st_mtime_ns for path in case.iterdir() if path in before} == before


def test_the_page_keeps_the_cases_of_earlier_calls(
    explainer: Explainer, bird_file: Path, tmp_path: Path
) -> None:
    first = explain_files(explainer, [bird_file], tmp_path, **QUICK)  # type: ignore[arg-type]
    assert "1 explained image<" in first.index.read_text()
    second = explain_files(explainer, [bird_file], tmp_path, seed=1, **QUICK)  # type: ignore[arg-type]
    page = second.index.read_text()
    assert len(second.cases) == 1
    assert "2 explained images" in page
    assert all(f"{case.name}/report.html" in page for case in (*first.cases, *second.cases))


@pytest.mark.parametrize("option", ["target", "versus"])
def test_a_misspelt_class_is_one_error_for_all_images(
    explainer: Explainer, bird_file: Path, tmp_path: Path, option: str
) -> None:
    with pytest.raises(ProtoPFaithError, match="no class 'Marsh Orin'"):
        explain_files(explainer, [bird_file] * 3, tmp_path / "out", **{**QUICK, option: "Marsh Orin"})  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"players": "rings"}, "players 'rings'"),
        ({"players": torch.zeros(9, 9, dtype=torch.long)}, "do not cover the image"),
        ({"baseline": "blurr"}, "no baseline named 'blurr'"),
        ({"second_baseline": [1.0, 2.0]}, "2 numbers, but the image has 3 channels"),
        ({"estimator": "magic"}, "no estimator named 'magic'"),
        ({"estimator": "exact", "players": 4}, "2\\^144 evaluations"),
        ({"options": {"shrinkge": False}}, "did you mean 'shrinkage'"),
        ({"options": {"seed": 3}}, "give it as seed=... beside"),
        ({"estimator": "moment_path", "options": {"nodes": 0}}, "0 nodes"),
        ({"budget": 10, "players": 4}, "budget of 10 evaluations is too small"),
        ({"precision": 0.0}, "precision is 0.0"),
        ({"batch_size": 0}, "batch size is 0"),
        ({"target": 1, "versus": 1}, "with itself"),
        ({"figures": ["gif"]}, "not as figure.gif"),
    ],
)
def test_what_is_wrong_for_every_image_is_one_error_before_any_work(
    explainer: Explainer, bird_file: Path, tmp_path: Path, options: dict, message: str
) -> None:
    asked: list[int] = []
    hook = explainer.model.encoder.register_forward_pre_hook(lambda *_: asked.append(1))
    try:
        with pytest.raises(ProtoPFaithError, match=message):
            explain_files(explainer, [bird_file] * 3, tmp_path / "out", coarse=True, **{**QUICK, **options})  # type: ignore[arg-type]
    finally:
        hook.remove()
    assert not asked
    assert not (tmp_path / "out").exists()


def test_a_network_alone_needs_preprocessing_and_images(
    explainer: Explainer, bird_file: Path, tmp_path: Path
) -> None:
    model, preprocessing = explainer.model, explainer.preprocessing
    with pytest.raises(ProtoPFaithError, match="does not say how images are prepared"):
        explain_files(model, [bird_file], tmp_path / "out", **QUICK)  # type: ignore[arg-type]
    with pytest.raises(ProtoPFaithError, match="does not know its training images"):
        explain_files(model, [bird_file], tmp_path / "out", preprocessing=preprocessing, **QUICK)  # type: ignore[arg-type]
    unprojected = copy.deepcopy(model)
    unprojected.sources = [None] * len(model.sources)
    with pytest.raises(ProtoPFaithError, match="were not projected"):
        explain_files(unprojected, [bird_file], tmp_path / "out", preprocessing=preprocessing, **QUICK)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()
    done = explain_files(
        model,
        [bird_file],
        tmp_path / "out",
        preprocessing=preprocessing,
        images=explainer.images.sets,  # type: ignore[union-attr]
        **QUICK,  # type: ignore[arg-type]
    )
    assert not done.failures


def test_superpixels_of_every_image_may_be_solved_exactly(
    explainer: Explainer, bird_file: Path, tmp_path: Path
) -> None:
    """How many there are is not known beforehand: no complaint before the image is seen."""
    plan = {**QUICK, "players": "superpixels:6", "estimator": "exact"}
    assert len(explain_files(explainer, [bird_file], tmp_path, sources=False, **plan).cases) == 1  # type: ignore[arg-type]


def test_an_interrupted_case_leaves_nothing(
    explainer: Explainer, bird_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("protopfaith.show.report.write_report", interrupt)
        with pytest.raises(KeyboardInterrupt):
            explain_files(explainer, [bird_file], tmp_path, **QUICK)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
    assert len(explain_files(explainer, [bird_file], tmp_path, **QUICK).cases) == 1  # type: ignore[arg-type]


def test_a_coarse_report_comes_first_and_goes_when_the_case_is_done(
    explainer: Explainer, bird_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lying: list[str] = []

    def look_and_write(*arguments: object, **keywords: object) -> None:
        lying.extend(path.read_text() for path in tmp_path.glob("*coarse.html"))
        write_case(*arguments, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr("protopfaith.explanation.cases.write_case", look_and_write)
    finer = {**QUICK, "players": 4, "budget": 600}
    done = explain_files(explainer, [bird_file], tmp_path, coarse=True, **finer)  # type: ignore[arg-type]
    assert len(lying) == 1
    assert "quick, coarse answer" in lying[0]
    assert {path.name for path in tmp_path.iterdir()} == {"index.html", done.cases[0].name}


def test_true_classes_and_masks_are_told(explainer: Explainer, bird_file: Path, tmp_path: Path) -> None:
    name = explainer.model.class_names[3]
    known = tmp_path / name / "bird.png"
    known.parent.mkdir()
    shutil.copy(bird_file, known)
    mask = Image.new("L", (100, 60))
    mask.paste(255, (0, 0, 50, 60))  # the left half
    mask.save(tmp_path / "mask.png")
    call = {**QUICK, "sources": False, "mask": tmp_path / "mask.png"}
    done = explain_files(explainer, [known, bird_file], tmp_path / "out", **call)  # type: ignore[arg-type]
    first, second = (load_explanation(case / "explanation.json") for case in done.cases)
    assert (first.true_class, second.true_class) == (3, None)
    assert first.path == "bird.png"  # without the folders of this machine
    assert first.settings["mask"] == "mask.png"
    assert first.mask is not None
    assert first.mask.shape == (48, 48)
    assert bool(first.mask[:, :24].all())
    assert not bool(first.mask[:, 24:].any())
    without = explain_files(explainer, [bird_file], tmp_path / "out", sources=False, **QUICK)  # type: ignore[arg-type]
    assert without.cases[0] not in done.cases


def test_with_a_progress_bar_and_a_figure(explainer: Explainer, bird_file: Path, tmp_path: Path) -> None:
    done = explain_files(
        explainer, [bird_file], tmp_path, budget=96, players=24, progress=True, precision=0.9
    )
    assert (done.cases[0] / "figure.png").stat().st_size > 10_000
    with pytest.raises(ProtoPFaithError):
        explain_files(tmp_path / "no run", [bird_file], tmp_path)


@pytest.mark.parametrize("name", ["explanation.json", "explanation.npz", "report.html", "figure.png"])
def test_a_damaged_case_is_made_whole(
    explainer: Explainer, bird_file: Path, tmp_path: Path, name: str
) -> None:
    asked = {**QUICK, "figures": ("png",)}
    case = explain_files(explainer, [bird_file], tmp_path, **asked).cases[0]  # type: ignore[arg-type]
    size = (case / name).stat().st_size
    (case / "note.txt").write_text("mine")
    for content in (None, b"", (case / name).read_bytes()[: size // 2]):
        (case / name).unlink() if content is None else (case / name).write_bytes(content)
        again = explain_files(explainer, [bird_file], tmp_path, **asked)  # type: ignore[arg-type]
        assert again.cases == (case,)
        assert not again.failures
        assert (case / name).stat().st_size == pytest.approx(size, rel=0.1)
        load_explanation(case / "explanation.json")
    assert (case / "note.txt").read_text() == "mine"


def test_what_is_wrong_with_a_mask_is_told_before_any_image(
    explainer: Explainer, bird_file: Path, tmp_path: Path
) -> None:
    Image.new("L", (48, 48)).save(tmp_path / "jane.png")
    with pytest.raises(ProtoPFaithError, match=r"jane\.png cannot be used"):
        explain_files(explainer, [bird_file], tmp_path / "out", mask=tmp_path / "jane.png")
    assert not (tmp_path / "out").exists()
    Image.new("L", (48, 4), 255).save(tmp_path / "jane.png")  # of no image's proportions
    done = explain_files(explainer, [bird_file], tmp_path / "out", mask=tmp_path / "jane.png", anonymous=True)
    assert "The mask has 48 x 4 pixels" in done.failures[0].message
    assert "jane" not in done.failures[0].message + done.index.read_text()

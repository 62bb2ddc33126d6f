"""Predictions for files, also where there is none."""

from __future__ import annotations

import copy
import csv
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from PIL import Image

from protopfaith.evaluation.prediction import predict_files, write_predictions
from protopfaith.explanation import Explainer
from protopfaith.network import ProtoPNet
from protopfaith.training import Run


@pytest.fixture
def files(run: Run, tmp_path: Path) -> list[Path]:
    """Two images and, between them, a file that is none."""
    test = run.data().test
    paths = [tmp_path / name for name in ("first.png", "broken.png", "last.png")]
    for path, index in ((paths[0], 0), (paths[2], len(test) - 1)):
        Image.fromarray(test.image(index).permute(1, 2, 0).numpy()).save(path)
    paths[1].write_text("no image")
    return paths


@pytest.mark.parametrize("batch_size", [1, 64])
def test_a_file_that_cannot_be_read_does_not_keep_the_others(
    run: Run, files: list[Path], batch_size: int
) -> None:
    model, preprocessing = run.model(), run.preprocessing()
    first, broken, last = predict_files(model, preprocessing, files, batch_size)
    assert "broken.png" in (broken.error or "")
    assert broken.class_name is None
    for found, path in ((first, files[0]), (last, files[2])):
        logits = model(preprocessing(Image.open(path))[None])[0].detach()
        assert found.error is None
        assert found.class_name == model.class_names[int(logits.argmax())]
        assert found.probabilities == pytest.approx(logits.softmax(0).tolist(), abs=1e-5)


def _spoiled(model: ProtoPNet, value: float) -> ProtoPNet:
    broken = copy.deepcopy(model)
    with torch.no_grad():
        broken.classifier.weight[-1, 0] = value
    return broken


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_logits_that_are_not_finite_give_no_class(
    run: Run, files: list[Path], value: float, tmp_path: Path
) -> None:
    model = _spoiled(run.model(), value)
    found = list(predict_files(model, run.preprocessing(), [files[0], files[2]]))
    for prediction, path in zip(found, (files[0], files[2]), strict=True):
        assert (prediction.class_name, prediction.probability) == (None, None)
        assert f"logits for {path} are not finite numbers" in (prediction.error or "")
        assert "train the network anew or use another checkpoint" in (prediction.error or "")
    write_predictions(tmp_path / "table.csv", found, model.class_names)
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["class"] for row in rows] == ["", ""]
    assert all(row["error"] for row in rows)


def test_what_looks_like_nothing_known_is_called_unfamiliar_as_in_explanations(
    run: Run, files: list[Path], tmp_path: Path
) -> None:
    model, explainer, asked = run.model(), Explainer(run), [files[0], files[2]]
    reference = explainer.reference
    assert reference is not None
    found = list(predict_files(model, run.preprocessing(), asked, reference=reference))
    for prediction, path in zip(found, asked, strict=True):
        explained = explainer.explain(path, budget=128, players=16, sources=False)
        assert prediction.unfamiliar is explained.is_unfamiliar is False
    assert reference.typical is not None
    never = replace(reference, typical=replace(reference.typical, usual=0.0))
    old = replace(reference, typical=None, usual_distances=torch.zeros_like(reference.usual_distances))
    for near in (never, old):
        strange = next(predict_files(model, run.preprocessing(), asked, reference=near))
        assert strange.unfamiliar
    unknown = next(predict_files(model, run.preprocessing(), asked))
    assert unknown.unfamiliar is None
    write_predictions(tmp_path / "table.csv", [found[0], strange, unknown], model.class_names)
    rows = list(csv.DictReader((tmp_path / "table.csv").open(encoding="utf-8")))
    assert [row["familiar"] for row in rows] == ["yes", "no", ""]

"""What a network is compared with: kept, read again, and not believed where it is damaged."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from protopfaith.data import load_data
from protopfaith.network import ProtoPNet
from protopfaith.training.calibration import Calibrator
from protopfaith.training.metrics import set_balanced_accuracy
from protopfaith.training.reference import Reference, weights_hash
from protopfaith.training.reference_measurement import measure_reference
from protopfaith.training.thresholds import FindingRule


@pytest.fixture(scope="module")
def model() -> ProtoPNet:
    torch.manual_seed(0)
    return ProtoPNet("small", 8, 2, 8, similarity="log").eval()


@pytest.fixture(scope="module")
def measured(model: ProtoPNet) -> Reference:
    return measure_reference(
        model, load_data("birds", size=32, train=24, validation=16, test=8), batch_size=7
    )


def test_it_is_kept_with_the_weights_that_it_belongs_to(
    model: ProtoPNet, measured: Reference, tmp_path: Path
) -> None:
    assert Reference.load(tmp_path, weights_hash(model)) is None
    measured.save(tmp_path)
    again = Reference.load(tmp_path, weights_hash(model))
    assert again is not None
    assert torch.equal(again.mean_similarities, measured.mean_similarities)
    assert torch.equal(again.usual_distances, measured.usual_distances)
    assert again.temperature == measured.temperature
    assert measured.typical is not None
    assert again.typical is not None
    assert torch.equal(again.typical.precision, measured.typical.precision)
    assert Reference.load(tmp_path, "other weights") is None
    (tmp_path / "reference.json").write_text("{")
    assert Reference.load(tmp_path, weights_hash(model)) is None


JUNK = (
    "x", "", -1, 1e400, math.nan, True, [], [None], ["x"], [math.nan], [[1.0]], {}, {"x": 1}, 10**400,
    [1.0] * 3,
)  # fmt: skip
NEEDED = (
    "weights_sha256",
    "mean_similarities",
    "images",
    "usual_distances",
    "temperature",
    "validation_images",
)


def test_what_was_not_measured_is_not_believed(model: ProtoPNet, measured: Reference, tmp_path: Path) -> None:
    """Every key with whatever does not belong there: then it is measured anew, which None asks for."""
    path = measured.save(tmp_path)
    whole = json.loads(path.read_text())
    damaged = {f"{key}={junk!r:.20}": {**whole, key: junk} for key in whole for junk in JUNK}
    del damaged["hidden_seen=True"]  # as well
    damaged |= {f"no {key}": {name: whole[name] for name in whole if name != key} for key in NEEDED}
    damaged |= {
        f"typical.{key}={junk!r:.20}": {**whole, "typical": {**whole["typical"], key: junk}}
        for key in whole["typical"]
        for junk in JUNK
    }
    believed = []
    for name, values in damaged.items():
        path.write_text(json.dumps(values))
        found = Reference.load(tmp_path, measured.weights_sha256)
        if found is not None and found.fits(model):
            believed.append(name)
    assert not believed


def test_rules_and_calibrations_belong_to_findings(model: ProtoPNet, measured: Reference) -> None:
    rule = FindingRule(0.5, 0.4, 0.6, 9, 9)
    assert measured.fits(model)
    assert not replace(measured, rules=(rule,) * 8).fits(model)
    assert not replace(measured, by_finding=Calibrator((1.0,) * 8, (0.0,) * 8)).fits(model)


def test_a_network_that_is_off_on_hidden_images_is_told_of(trained, data, tmp_path) -> None:
    found = measure_reference(trained.model(), data, hidden_seen=False)
    whole, half = found.half_hidden
    assert 0 <= half <= 1
    assert whole == pytest.approx(set_balanced_accuracy(trained.model(), data.validation, data.preprocessing))
    off = replace(found, half_hidden=(0.9, 0.4))
    assert "was never shown images with hidden regions" in off.about_hidden()
    assert "was never shown" not in replace(off, hidden_seen=True).about_hidden()
    assert replace(found, half_hidden=(0.9, 0.85)).about_hidden() == ""
    off.save(tmp_path)
    assert Reference.load(tmp_path, off.weights_sha256).half_hidden == (0.9, 0.4)
    values = json.loads((tmp_path / "reference.json").read_text())
    del values["half_hidden"], values["hidden_seen"]  # as earlier versions wrote it
    (tmp_path / "reference.json").write_text(json.dumps(values))
    assert Reference.load(tmp_path, off.weights_sha256).about_hidden() == ""


def test_what_earlier_versions_kept_is_read_without_what_is_typical(
    measured: Reference, tmp_path: Path
) -> None:
    measured.save(tmp_path)
    values = json.loads((tmp_path / "reference.json").read_text())
    del values["typical"]
    (tmp_path / "reference.json").write_text(json.dumps(values))
    old = Reference.load(tmp_path, measured.weights_sha256)
    assert old is not None
    assert old.typical is None
    assert torch.equal(old.usual_distances, measured.usual_distances)

"""What a network is compared with, against the slow way."""

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
from protopfaith.training.reference import (
    FEW,
    SAMPLE,
    Reference,
    _sample,
    fit_temperature,
    measure_and_keep,
    measure_reference,
    usual_distances,
    weights_hash,
)
from protopfaith.training.thresholds import FindingRule
from protopfaith.training.typical import traits


@pytest.fixture(scope="module")
def model() -> ProtoPNet:
    torch.manual_seed(0)
    return ProtoPNet("small", 8, 2, 8, similarity="log").eval()


@pytest.fixture(scope="module")
def measured(model: ProtoPNet) -> Reference:
    return measure_reference(
        model, load_data("birds", size=32, train=24, validation=16, test=8), batch_size=7
    )


def test_means_are_those_of_similarities(model: ProtoPNet, measured: Reference) -> None:
    """Not the similarity of the mean distance, which differs with log similarity."""
    data = load_data("birds", size=32, train=24, validation=16, test=8)
    total = torch.zeros(16, dtype=torch.float64)
    for i in range(24):
        with torch.no_grad():
            s = model.distances(data.preprocessing(data.train.image(i))[None])[0].double()
        total += torch.log((s + 1) / (s + 1e-4)) / 24
    assert torch.allclose(measured.mean_similarities, total, atol=1e-4)
    assert (measured.images, measured.validation_images) == (24, 16)


def test_a_temperature_undoes_what_was_multiplied() -> None:
    """Labels drawn from softmax(logits): the same logits times 3 need a temperature of 3."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4000, 5, generator=generator) * 2
    labels = torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]
    assert fit_temperature(logits, labels) == pytest.approx(1, abs=0.1)
    assert fit_temperature(3 * logits, labels) == pytest.approx(3 * fit_temperature(logits, labels), rel=0.01)


def test_without_any_mistake_a_network_is_not_infinitely_sure() -> None:
    """As if one of 41 images had been wrong."""
    logits = 10 * torch.eye(4)[torch.arange(40) % 4]
    t = fit_temperature(logits, torch.arange(40) % 4)
    p = float((logits / t).softmax(1).amax(1).mean())
    assert p == pytest.approx(40 / 41, abs=1e-3)


def test_usual_distances_are_quantiles_of_a_class_or_tails_of_all() -> None:
    owners = torch.tensor([0, 0, 1, 2])
    labels = torch.tensor([0] * FEW + [1] * 10 + [2] * 15)
    distances = torch.rand(len(labels), 4, dtype=torch.float64)
    distances[:, 3] *= 7  # distances to the third class are larger
    own = [distances[labels == 0][:, :2].amin(1), distances[labels == 1][:, 2], distances[labels == 2][:, 3]]
    found = usual_distances(distances, labels, owners, 4)
    assert float(found[0]) == pytest.approx(float(torch.quantile(own[0], 0.99)))
    tail = torch.quantile(torch.cat([one / one.median() for one in own]), 0.99)
    for label in (1, 2):
        assert float(found[label]) == pytest.approx(float(tail * own[label].median()))
    assert float(found[3]) == pytest.approx(float(tail * torch.cat(own).median()))  # no image of it
    assert usual_distances(distances[:0], labels[:0], owners, 2).isnan().all()


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


def test_without_validation_images_there_is_no_temperature(model: ProtoPNet) -> None:
    data = load_data("birds", size=32, train=8, validation=8, test=8)
    found = measure_reference(model, replace(data, validation=data.validation.subset([])))
    assert found.temperature is None
    assert all(math.isnan(d) for d in found.usual_distances.tolist())
    assert repr(found) == "Reference(8 training images, not calibrated, 0 validation images)"


def test_a_few_validation_images_calibrate_nothing(model: ProtoPNet) -> None:
    data = load_data("birds", size=32, train=8, validation=16, test=8)
    for count, calibrated in ((1, False), (4, False), (5, True)):
        some = replace(data, validation=data.validation.subset(range(count)))
        assert (measure_reference(model, some).temperature is not None) is calibrated


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


def test_the_cost_of_measuring_is_said_beforehand(
    model: ProtoPNet, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of another machine is measured when it is first explained, which takes minutes on a CPU."""
    data = load_data("birds", size=32, train=24, validation=16, test=8)
    plain, clock = ProtoPNet.distances, [0.0]

    def slow(self: ProtoPNet, x: torch.Tensor) -> torch.Tensor:
        clock[0] += 0.02 * len(x)
        return plain(self, x)

    monkeypatch.setattr(ProtoPNet, "distances", slow)
    monkeypatch.setattr("protopfaith.training.reference.time.perf_counter", lambda: clock[0])
    with caplog.at_level("INFO", "protopfaith"):
        measure_and_keep(model, data, None)
    assert caplog.messages[0].startswith(
        "Measuring the network once, on 24 training and 16 validation images: about 10 s"
    )


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


def test_a_sample_has_all_classes_where_these_take_turns() -> None:
    """Every second of 1,000 images would be of four classes out of eight."""
    images = load_data("birds", size=16, train=1000, validation=8, test=8).train
    chosen = _sample(images)
    assert len(chosen) == SAMPLE
    assert set(chosen.labels.tolist()) == set(range(8))
    assert chosen.paths == _sample(images).paths == sorted(chosen.paths)
    assert _sample(images, 1000).paths == images.paths


def test_noise_looks_like_nothing_that_a_network_knows(model: ProtoPNet) -> None:
    """However sure it is: what is unlike all training images is caught, and further birds are not."""
    data = load_data("birds", size=32, train=160, validation=120, test=80)
    found = measure_reference(model, data)
    assert found.typical is not None
    random = torch.Generator().manual_seed(0)
    noise = 255 * torch.randint(0, 2, (40, 3, 32, 32), generator=random, dtype=torch.uint8)
    for pixels, labels, expected in ((noise, None, 1.0), (data.test.uint8(), data.test.labels, 0.0)):
        with torch.no_grad():
            inputs = data.preprocessing.normalize(pixels)
            maps = model.distance_maps(inputs)
            said = model.logits(maps.amin(dim=(-2, -1))).argmax(1) if labels is None else labels
        far = found.typical.distances(traits(model, inputs, maps, said), said) > found.typical.usual
        assert float(far.double().mean()) == pytest.approx(expected, abs=0.06)


def test_the_limit_is_one_of_images_as_the_network_takes_them(model: ProtoPNet) -> None:
    """New images are compared with the class that they are given, true or not; so is what limits them. This
    network is nearly always wrong."""
    data = load_data("birds", size=32, train=64, validation=120, test=8)
    typical = measure_reference(model, data).typical
    assert typical is not None
    found = []
    for i in range(120):
        with torch.no_grad():
            image = data.preprocessing(data.validation.image(i))[None]
            maps = model.distance_maps(image)
            said = model.logits(maps.amin(dim=(-2, -1))).argmax(1)
        found.append(float(typical.distances(traits(model, image, maps, said), said)[0]))
    assert typical.usual == pytest.approx(sorted(found)[math.ceil(0.99 * 121) - 1], rel=1e-4)

"""What is measured on a network's images, against the slow way."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from protopfaith.data import load_data
from protopfaith.network import ProtoPNet
from protopfaith.training.reference_measurement import SAMPLE, _sample, measure_and_keep, measure_reference
from protopfaith.training.typical import traits


@pytest.fixture(scope="module")
def model() -> ProtoPNet:
    torch.manual_seed(0)
    return ProtoPNet("small", 8, 2, 8, similarity="log").eval()


def test_means_are_those_of_similarities(model: ProtoPNet) -> None:
    """Not the similarity of the mean distance, which differs with log similarity."""
    data = load_data("birds", size=32, train=24, validation=16, test=8)
    measured = measure_reference(model, data, batch_size=7)
    total = torch.zeros(16, dtype=torch.float64)
    for i in range(24):
        with torch.no_grad():
            s = model.distances(data.preprocessing(data.train.image(i))[None])[0].double()
        total += torch.log((s + 1) / (s + 1e-4)) / 24
    assert torch.allclose(measured.mean_similarities, total, atol=1e-4)
    assert (measured.images, measured.validation_images) == (24, 16)


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
    monkeypatch.setattr("protopfaith.training.reference_measurement.time.perf_counter", lambda: clock[0])
    with caplog.at_level("INFO", "protopfaith"):
        measure_and_keep(model, data, None)
    assert caplog.messages[0].startswith(
        "Measuring the network once, on 24 training and 16 validation images: about 10 s"
    )


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

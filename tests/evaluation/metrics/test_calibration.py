"""Against the definition, bin by bin."""

from __future__ import annotations

import pytest
import torch

from protopfaith.evaluation.metrics.calibration import calibration


def test_the_error_is_its_definition() -> None:
    generator = torch.Generator().manual_seed(0)
    logits, labels = (
        torch.randn(200, 4, generator=generator) * 3,
        torch.randint(4, (200,), generator=generator),
    )
    found = calibration(logits, labels, 2.0, bins=5)
    p = (logits.double() / 2).softmax(1)
    expected = 0.0
    for number in range(5):
        inside = [i for i in range(200) if number / 5 <= float(p[i].max()) < (number + 1) / 5]
        assert found.counts[number] == len(inside)
        if inside:
            sure = sum(float(p[i].max()) for i in inside) / len(inside)
            right = sum(int(p[i].argmax()) == int(labels[i]) for i in inside) / len(inside)
            expected += len(inside) / 200 * abs(sure - right)
            assert found.confidence[number] == pytest.approx(sure)
            assert found.accuracy[number] == pytest.approx(right)
    assert found.error == pytest.approx(expected)
    assert found.raw_error == pytest.approx(calibration(logits, labels, bins=5).error)


def test_a_network_that_is_as_sure_as_it_is_right_has_no_error() -> None:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(20_000, 3, generator=generator) * 2
    labels = torch.multinomial(logits.softmax(1), 1, generator=generator)[:, 0]
    assert calibration(logits, labels).error < 0.02
    assert calibration(3 * logits, labels).error > 0.1
    assert calibration(3 * logits, labels, 3.0).error < 0.02


def test_it_is_told_in_a_line() -> None:
    logits, labels = torch.tensor([[4.0, 0.0], [0.0, 4.0]]), torch.tensor([0, 1])
    assert str(calibration(logits, labels)) == "Expected calibration error 0.018; not calibrated"
    assert str(calibration(logits, labels, 2.0)).endswith("at a temperature of 2, 0.018 without")

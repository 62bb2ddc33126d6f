"""Calibration of several findings, each by itself."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from protopfaith.training.calibration import (
    Calibrator,
    as_calibrator,
    calibrator_from_json,
    calibrator_to_json,
    fit_calibrator,
    fit_temperature,
)


def drawn(scale: float, offset: float, count: int = 20_000) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits, and labels that are as frequent as logits / scale + offset says."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(count, 1, generator=generator, dtype=torch.float64)
    p = (logits / scale + offset).sigmoid()
    return logits, (torch.rand(count, 1, generator=generator) < p).double()


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (2.0, -1.5), (0.5, 2.0)])
def test_what_was_done_to_logits_is_found(scale: float, offset: float) -> None:
    found = fit_calibrator(*drawn(scale, offset), temperature=1.0)
    assert found.temperature(0) == pytest.approx(scale, rel=0.1)
    assert found.offset(0) == pytest.approx(offset, abs=0.1)


def test_findings_are_calibrated_apart_and_unknown_labels_are_left_out() -> None:
    (x, y), (other, z) = drawn(2.0, -1.0, 2_000), drawn(1.0, 1.0, 2_000)
    alone = fit_calibrator(x, y, temperature=1.0)
    some = z.clone()
    some[::2] = torch.nan
    both = fit_calibrator(torch.cat([x, other], 1), torch.cat([y, some], 1), temperature=1.0)
    half = fit_calibrator(other[1::2], z[1::2], temperature=1.0)
    assert both.temperatures == pytest.approx([*alone.temperatures, *half.temperatures])
    assert both.offsets == pytest.approx([*alone.offsets, *half.offsets])


def test_where_nothing_is_known_the_common_temperature_holds() -> None:
    found = fit_calibrator(torch.ones(4, 1), torch.full((4, 1), torch.nan), temperature=1.7)
    assert found == Calibrator((1.7,), (0.0,))


def test_a_finding_that_is_never_confused_stays_near_the_common_temperature() -> None:
    logits = torch.tensor([-6.0, -5.0, 5.0, 6.0]).repeat(50)[:, None]
    found = fit_calibrator(logits, (logits > 0).double(), temperature=1.5)
    assert 0.5 < found.temperature(0) <= 1.6


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.floats(0.1, 9), st.floats(-5, 5)), min_size=1, max_size=4))
def test_it_is_kept_as_json(pairs: list[tuple[float, float]]) -> None:
    made = Calibrator(tuple(t for t, _ in pairs), tuple(b for _, b in pairs))
    assert calibrator_from_json(calibrator_to_json(made)) == made
    x = torch.randn(3, len(pairs), dtype=torch.float64)
    for number, (t, b) in enumerate(pairs):
        assert torch.allclose(made(x)[:, number], x[:, number] / t + b)


@pytest.mark.parametrize(
    "bad", [{"temperatures": [0.0], "offsets": [0.0]}, {"temperatures": [1.0], "offsets": []}]
)
def test_what_is_damaged_is_refused(bad: dict) -> None:
    with pytest.raises(ValueError, match="do not match"):
        calibrator_from_json(bad)


def test_one_temperature_is_for_all_classes() -> None:
    x = torch.randn(2, 5)
    assert torch.allclose(as_calibrator(2.0)(x), x / 2)
    assert torch.equal(as_calibrator(None)(x), x)


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

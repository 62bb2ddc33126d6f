import subprocess
import sys

import pytest
import torch

from protopfaith.moments.precision import _settings, full_float32


def _now():
    return [getattr(owner, name) for owner, name in _settings()]


@pytest.fixture
def reduced():
    """TF32 wherever this version of torch knows it, and what was there before comes back."""
    before = [(owner, name, getattr(owner, name)) for owner, name in _settings()]
    for owner, name, value in before:
        setattr(owner, name, True if isinstance(value, bool) else "tf32")
    yield
    for owner, name, value in before:
        setattr(owner, name, value)


def test_nothing_is_reduced_inside_and_everything_comes_back(reduced):
    before = _now()
    assert all(value in {True, "tf32"} for value in before)
    with full_float32():
        assert all(value in {False, "ieee"} for value in _now())
    assert _now() == before
    with pytest.raises(ValueError, match="stop"), full_float32():
        raise ValueError("stop")
    assert _now() == before


def test_settings_that_are_full_already_are_left_alone():
    before = _now()
    with full_float32():
        inside = _now()
    assert _now() == before
    assert all(a == b for a, b in zip(before, inside, strict=True) if a not in {True, "tf32", "bf16"})


def test_convolutions_inside_are_exact_to_float32(reduced):
    x, w = torch.randn(1, 64, 8, 8), torch.randn(32, 64, 3, 3)
    exact = torch.nn.functional.conv2d(x.double(), w.double())
    with full_float32():
        found = torch.nn.functional.conv2d(x, w)
    assert float((found - exact).abs().max()) < 1e-4


@pytest.mark.skipif(not hasattr(torch.backends, "fp32_precision"), reason="this torch has no setting above")
def test_inherited_settings_stay_inherited():
    """A later change of the setting above still reaches convolutions and matrix products."""
    program = """
import torch
from protopfaith.moments.precision import _settings, full_float32
torch.backends.cudnn.conv.fp32_precision = "none"
torch.backends.fp32_precision = "tf32"
assert {getattr(owner, name) for owner, name in _settings()} == {"tf32"}
with full_float32():
    assert {getattr(owner, name) for owner, name in _settings()} == {"ieee"}
torch.backends.fp32_precision = "ieee"
assert {getattr(owner, name) for owner, name in _settings()} == {"ieee"}
"""
    run = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr

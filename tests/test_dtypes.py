from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import torch

from protopfaith.dtypes import full_float32, switches, unrounded
from protopfaith.network import squared_distances

SETTINGS = {
    "untouched": "pass",
    "legacy, medium": "torch.set_float32_matmul_precision('medium')",
    "legacy, allow_tf32": "torch.backends.cuda.matmul.allow_tf32 = True",
    "legacy, old torch": "torch.set_float32_matmul_precision('medium')",
    "new, everywhere": "torch.backends.fp32_precision = 'tf32'",
    "new, CUDA matrix products": "torch.backends.cuda.matmul.fp32_precision = 'tf32'",
    "new, CPU matrix products": "torch.backends.mkldnn.matmul.fp32_precision = 'bf16'",
}
# These settings are global and torch remembers which kind was used, so each case has a process of its own.
PROGRAM = """
import json, os, sys
import torch
from protopfaith import dtypes
from protopfaith.network import squared_distances

NEW = hasattr(torch.backends.cuda.matmul, "fp32_precision")

def read(get):
    try:
        return get()
    except RuntimeError:  # torch refuses to answer after legacy and new settings were mixed
        return "refused"

def settings():
    matmuls = [torch.backends.cuda.matmul, torch.backends.mkldnn.matmul] if NEW else []
    return [
        read(torch.get_float32_matmul_precision),
        read(lambda: torch.backends.cuda.matmul.allow_tf32),
        read(lambda: torch.backends.cudnn.allow_tf32),
        *(matmul.fp32_precision for matmul in matmuls),
        torch.backends.fp32_precision if NEW else None,
        torch.is_autocast_enabled("cpu"),
    ]

def case(name, setting):
    exec(setting)
    if name == "legacy, old torch":  # what torch before 2.9 goes through
        dtypes._by_backend = dtypes._legacy
    before = settings()
    squared_distances(torch.rand(1, 8, 2, 2), torch.rand(3, 8))
    result = {"name": name, "before": before, "after": settings()}
    with dtypes.unrounded("cpu"):
        result["inside"] = settings()
    with dtypes.full_float32():
        result["inside with convolutions"] = settings()
    result["after both"] = settings()
    if name == "new, everywhere":
        torch.backends.fp32_precision = "ieee"
        result["inherited"] = torch.backends.cuda.matmul.fp32_precision
    print(json.dumps(result), flush=True)

torch.set_num_threads(1)
for name, setting in json.loads(sys.argv[1]).items():
    if NEW or not name.startswith("new"):
        child = os.fork()
        if not child:
            case(name, setting)
            os._exit(0)
        os.waitpid(child, 0)
"""


@pytest.fixture(scope="module")
def around_a_call():
    command = [sys.executable, "-c", PROGRAM, json.dumps(SETTINGS)]
    run = subprocess.run(command, check=True, timeout=300, capture_output=True, text=True)
    return {result["name"]: result for result in map(json.loads, run.stdout.splitlines())}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("name", SETTINGS)
def test_the_callers_settings_are_back_afterwards(name, around_a_call):
    if name.startswith("new") and not hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        pytest.skip("this torch has the legacy settings only")
    found = around_a_call[name]
    assert found["after"] == found["before"]
    assert found["after both"] == found["before"]
    for inside in (found["inside"], found["inside with convolutions"]):
        if name == "legacy, old torch":
            assert inside[0] == "highest"
        else:  # the settings of CUDA and CPU matrix products, where this torch has them
            assert all(setting in ("ieee", "none") for setting in inside[3:-2])
    assert found["inside"][2] == found["before"][2]  # convolutions are left alone
    assert found["inside with convolutions"][2] in (False, "refused")
    if name == "new, everywhere":  # a later change of the setting above still reaches the matrix products
        assert around_a_call[name]["inherited"] == "ieee"


def test_inside_products_are_exact_and_autocast_is_off():
    a = torch.rand(64, 64, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", dtype=torch.bfloat16), unrounded("cpu"):
        product = a @ a
    assert product.dtype == torch.float32
    torch.testing.assert_close(product.double(), a.double() @ a.double(), rtol=1e-6, atol=1e-6)


def test_settings_come_back_after_an_error():
    before = torch.get_float32_matmul_precision()
    with pytest.raises(ZeroDivisionError), unrounded("cpu"):
        _ = 1 / 0
    assert torch.get_float32_matmul_precision() == before


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_tf32_does_not_reach_distances_on_a_gpu():
    program = """
import torch
from protopfaith.network import squared_distances
torch.set_float32_matmul_precision("medium")
z, p = torch.rand(8, 128, 7, 7, device="cuda"), torch.rand(100, 128, device="cuda")
with torch.autocast("cuda", dtype=torch.bfloat16):
    ours = squared_distances(z, p)
exact = (z.double()[:, None] - p.double()[None, :, :, None, None]).square().sum(2)
assert (ours - exact).abs().max() < 1e-4, (ours - exact).abs().max()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace")
def test_works_while_compiling():
    compiled = torch.compile(squared_distances, backend="eager")
    z, p = torch.rand(1, 8, 2, 2), torch.rand(3, 8)
    torch.testing.assert_close(compiled(z, p), squared_distances(z, p))


def _now():
    return [switch.read() for switch in switches(convolutions=True)]


def _is_full(value, switch):
    return value in (switch.full, switch.inherited)


@pytest.fixture
def reduced():
    """TF32 wherever this version of torch knows it, and what was there before comes back."""
    those = switches(convolutions=True)
    before = [switch.read() for switch in those]
    for switch in those:
        switch.write({"ieee": "tf32", "highest": "high", False: True}[switch.full])
    yield
    for switch, value in zip(those, before, strict=True):
        switch.write(value)


def test_nothing_is_reduced_inside_and_everything_comes_back(reduced):
    before = _now()
    assert set(before) <= {True, "tf32", "high"}
    with full_float32():
        assert _now() == [switch.full for switch in switches(convolutions=True)]
    assert _now() == before
    with pytest.raises(ValueError, match="stop"), full_float32():
        raise ValueError("stop")
    assert _now() == before


def test_settings_that_are_full_already_are_left_alone():
    before = _now()
    with full_float32():
        inside = _now()
    assert _now() == before
    for switch, was, then in zip(switches(convolutions=True), before, inside, strict=True):
        assert then == (was if _is_full(was, switch) else switch.full)


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
from protopfaith.dtypes import full_float32, switches
def now():
    return {switch.read() for switch in switches(convolutions=True)}
torch.backends.cudnn.conv.fp32_precision = "none"
torch.backends.fp32_precision = "tf32"
assert now() == {"tf32"}
with full_float32():
    assert now() == {"ieee"}
torch.backends.fp32_precision = "ieee"
assert now() == {"ieee"}
"""
    run = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr

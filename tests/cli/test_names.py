"""Names are known before what they name is imported."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest
import torch

from protopfaith.cli.names import (
    DEVICES,
    PLACES,
    check_baseline,
    check_device,
    check_elsewhere,
    check_estimator,
    check_explainers,
    registered,
)
from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import ESTIMATORS

PROGRAM = """
import sys
from protopfaith.cli.names import PLACES, registered
for registry in PLACES:
    print(registry, *registered(registry), sep=",")
assert "torch" not in sys.modules
"""


def test_names_read_from_files_are_those_that_are_registered() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    read = {line.split(",")[0]: line.split(",")[1:] for line in done.stdout.splitlines()}
    for name, (kind, module, _) in PLACES.items():
        registry = getattr(importlib.import_module(module), name)
        ours = {key for key, home in homes(registry) if home.startswith(("protopfaith.", "torch."))}
        assert set(read[name]) == ours  # other tests may have registered more
        assert registry.kind == kind


def homes(registry: dict[str, object]) -> list[tuple[str, str]]:
    """The module of what is registered under each name."""
    things = {name: getattr(thing, "read", thing) for name, thing in registry.items()}
    return [(name, getattr(thing, "__module__", "")) for name, thing in things.items()]


def test_what_a_module_of_ones_own_registers_is_known() -> None:
    @ESTIMATORS.register("my_own")
    def guess(game: object, **plan: object) -> None: ...

    try:
        assert "my_own" in registered("ESTIMATORS")
        assert check_estimator("my_own") == "my_own"
    finally:
        del ESTIMATORS["my_own"]
    with pytest.raises(ProtoPFaithError, match="--import MODULE"):
        check_estimator("my_own")


def test_good_names_pass() -> None:
    for device in (*DEVICES, "cuda:1", "cpu:0"):
        if device.startswith("cuda") and not torch.cuda.is_available():
            continue  # whether it is refused is up to the drivers that are there
        assert check_device(device) == device
    for baseline in ("zero", "blur", "blur:8", "color:0,0.5,1", "mean"):
        assert check_baseline(baseline) == baseline
    assert check_explainers(None) is None
    assert check_explainers(" ours , protopnet") == " ours , protopnet"
    assert check_estimator("default") == "default"
    assert check_elsewhere("birds") == "birds"

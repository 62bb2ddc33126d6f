"""The sections of a recipe hold what they are given, and refuse what they cannot."""

from __future__ import annotations

import dataclasses
from typing import get_type_hints

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.training import Recipe
from protopfaith.training import recipe_sections as sections
from protopfaith.training.recipe import recipe_from_dict
from protopfaith.typed import to_dict

SECTIONS = [kind for kind in vars(sections).values() if dataclasses.is_dataclass(kind)]


@pytest.mark.parametrize("section", SECTIONS)
def test_its_defaults_are_within_its_own_bounds(section: type) -> None:
    for name, kind in get_type_hints(Recipe).items():
        if kind is section:
            values = to_dict(section())
            assert getattr(recipe_from_dict({name: values}), name) == section()


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("schedule.cycles=-1", "at least"),
        ("optimization.clip=0", "more than 0"),
        ("tree.depth=0", "at least 1"),
        ("data.seed=-1", "at least 0"),
        ("schedule.warmup.batch_norm=never", "batch_norm"),
        ("compute.devices=abc", "how many"),
        ("compute.devices=-3", "how many"),
    ],
)
def test_bounds_are_told(override: str, words: str) -> None:
    with pytest.raises(ProtoPFaithError, match=words):
        recipe_from_dict({}, [override])


@pytest.mark.parametrize("devices", ["2", "-1", "auto", "0,1", "0,", "[0]"])
def test_devices_are_what_fabric_takes(devices: str) -> None:
    assert str(recipe_from_dict({}, [f"compute.devices={devices}"]).compute.devices) == devices

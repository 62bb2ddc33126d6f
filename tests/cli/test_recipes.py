from __future__ import annotations

from pathlib import Path

import yaml

from protopfaith.training import load_recipe
from tests.cli.conftest import fails_with, protopfaith


def test_recipes_are_listed_and_shown_with_their_meaning(place: Path) -> None:
    assert "birds" in protopfaith(place, "recipes").stdout
    done = protopfaith(place, "recipes", "show", "birds")
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout)["model"]["encoder"] == load_recipe("birds").model.encoder
    assert "# K" in done.stdout
    assert protopfaith(place, "recipes", "show", "tiny.yaml").returncode == 0
    fails_with(protopfaith(place, "recipes", "show", "brids"), "did you mean 'birds'")

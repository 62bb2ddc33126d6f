"""Search spaces."""

from __future__ import annotations

import pytest
import yaml

from protopfaith.errors import ProtoPFaithError
from protopfaith.training import grid_names, load_grid, load_recipe
from protopfaith.training.recipe import recipe_from_dict


@pytest.mark.parametrize("name", grid_names())
def test_the_paper_s_search_space(name):
    points = list(load_grid(name).points())
    assert len(points) == 6 * 2 * 3 * 3
    for point in points:  # every point is a valid recipe
        recipe_from_dict({}, [f"{key}={value}" for key, value in point.items()])
    load_recipe(load_grid(name).recipe)


def test_bad_search_spaces(tmp_path):
    with pytest.raises(ProtoPFaithError, match="no search space"):
        load_grid("nothing")
    path = tmp_path / "grid.yaml"
    path.write_text(yaml.safe_dump({"recipe": "birds", "search": {"seed": 3}}))
    with pytest.raises(ProtoPFaithError, match="'seed' must be a list"):
        load_grid(path)
    path.write_text("search: [1,")
    with pytest.raises(ProtoPFaithError, match=r"search space .* is not valid YAML"):
        load_grid(path)
    path.write_text(yaml.safe_dump({"search": {"seed": [3]}}))
    with pytest.raises(ProtoPFaithError, match="names no recipe"):
        load_grid(path)


def test_every_point_has_a_recipe(tmp_path):
    path = tmp_path / "grid.yaml"
    path.write_text("recipe: birds\nsearch:\n  model.encoder: [small, convnet]\n  seed: [1, 2]")
    found = load_grid(path).recipes(["costs.cluster=0.25"])
    assert [(one.model.encoder, one.seed) for one in found] == [
        ("small", 1),
        ("small", 2),
        ("convnet", 1),
        ("convnet", 2),
    ]
    assert {one.costs.cluster for one in found} == {0.25}

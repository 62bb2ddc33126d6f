"""The way through a tree, as reports show it."""

from __future__ import annotations

import html
from pathlib import Path

import pytest
import torch

from protopfaith.explanation import Explanation, explain
from protopfaith.network import ProtoTree, Route, Turn
from protopfaith.network.branches import full_tree
from protopfaith.show.pictures import Pictures
from protopfaith.show.report import render_report
from protopfaith.show.tree import draw_tree, tree_view, way_sum


@pytest.fixture(scope="module")
def explained() -> Explanation:
    torch.manual_seed(0)
    tree = ProtoTree("small", ["cat", "dog", "eel"], depth=3, prototype_channels=8).eval()
    tree.leaves.data.normal_(std=4)
    return explain(tree, torch.rand(3, 32, 32), players=8, budget=128, sources=False)


def test_every_turn_is_a_step_with_both_probabilities(explained: Explanation) -> None:
    view = tree_view(explained, 1.0, Pictures())
    assert view is not None
    assert explained.route is not None
    assert [step.yes for step in view.steps] == [turn.right for turn in explained.route.turns]
    assert all(0 <= step.place <= 4 for step in view.steps)
    assert all(len(step.pictures) == 2 for step in view.steps)


def test_the_report_shows_the_way_and_no_sums(explained: Explanation, tmp_path: Path) -> None:
    page = html.unescape(render_report(explained))
    assert "The way through the tree" in page
    assert "The complete sum" not in page
    assert "Ψ" not in page
    assert "ProtoTree's own map" in page
    assert "ProtoPNet" not in page
    assert explained.route is not None
    for turn in explained.route.turns:
        assert f"Something like prototype {turn.prototype}?" in page
    explained.save(tmp_path / "why")


def test_the_sum_of_the_turns_is_that_of_the_leaf() -> None:
    route = Route((Turn(0, True, 0.8), Turn(2, False, 0.5)), 2, torch.tensor([0.9, 0.1]))
    table = way_sum(route)[0]
    *terms, total = [float(row.text) for row in table.rows]
    assert sum(terms) == pytest.approx(total, abs=2e-3)


@pytest.mark.parametrize("depth", [1, 4, 6])
def test_the_drawing_has_every_node_once_and_the_way_from_root_to_leaf(depth: int) -> None:
    branches = full_tree(depth)
    turns, place = [], 0
    while place >= 0:
        turns.append(Turn(place, place % 2 == 0, 0.9))
        place = branches.children[place][place % 2 == 0]
    route = Route(tuple(turns), -1 - place, torch.ones(2), branches.children, (0,) * branches.leaves)
    drawing = draw_tree(route, ["cat", "dog"])
    assert drawing is not None
    assert len(drawing.dots) == branches.nodes + branches.leaves
    assert len(drawing.lines) == len(drawing.dots) - 1
    assert sum(line.taken for line in drawing.lines) == depth
    assert sum(dot.taken for dot in drawing.dots) == depth + 1
    assert all(0 <= dot.x <= drawing.width and 0 <= dot.y <= drawing.height for dot in drawing.dots)


@pytest.mark.parametrize("depth", [7, 9])
def test_of_a_large_tree_the_way_is_drawn_and_the_rest_in_parts(depth: int) -> None:
    branches = full_tree(depth)
    turns, place = [], 0
    while place >= 0:
        turns.append(Turn(place, place % 2 == 0, 0.9))
        place = branches.children[place][place % 2 == 0]
    classes = tuple(leaf % 5 for leaf in range(branches.leaves))
    route = Route(tuple(turns), -1 - place, torch.ones(5), branches.children, classes)
    drawing = draw_tree(route, ["ant", "bee", "cat", "dog", "eel"])
    assert drawing is not None
    assert sum(dot.taken for dot in drawing.dots) == depth + 1
    assert sum(line.taken for line in drawing.lines) == depth
    ends = [dot for dot in drawing.dots if dot.leaf]
    assert sum(dot.leaves for dot in ends) == branches.leaves
    largest = max(ends, key=lambda dot: dot.leaves)
    assert largest.leaves == branches.leaves // 2
    assert largest.text.startswith(f"{branches.leaves // 2} leaves: ")
    assert largest.text.endswith("and 2 others")
    assert all(0 <= dot.x <= drawing.width and 0 <= dot.y <= drawing.height for dot in drawing.dots)


def test_an_unknown_tree_is_not_drawn() -> None:
    assert draw_tree(Route((), 0, torch.ones(2)), ["cat", "dog"]) is None

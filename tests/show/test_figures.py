from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.axes import Axes
from PIL import Image

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explanation
from protopfaith.show.figures import figure


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_figures_are_written_in_three_formats(explanation: Explanation, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"figure.{suffix}"
    figure(explanation, path, dpi=60)
    start = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[suffix]
    assert path.read_bytes().startswith(start)


def test_a_png_has_print_size(explanation: Explanation, tmp_path: Path) -> None:
    drawing = figure(explanation, tmp_path / "figure.png")
    with Image.open(tmp_path / "figure.png") as image:
        assert image.width == pytest.approx(300 * drawing.get_figwidth(), abs=2)


def test_a_figure_says_what_it_shows(explanation: Explanation, tmp_path: Path) -> None:
    first, second = explanation.evidence
    marked = replace(explanation, evidence=(first, replace(second, duplicate_of=first.prototype)))
    figure(marked, tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text()
    for words in (
        explanation.title,
        "share in the similarity",
        "more similar",
        "same as prototype",
        "ProtoPNet",
    ):
        assert words in text


def test_without_sources_and_with_two_classes(explanation: Explanation) -> None:
    alone = tuple(replace(one, source_side=None) for one in explanation.evidence)
    assert figure(replace(explanation, evidence=alone, versus=0)) is not None


def test_no_room_is_left_for_sources_that_are_not_shown(explanation: Explanation) -> None:
    evidence = tuple(replace(one, source_side=None) for one in explanation.evidence)
    alone = replace(explanation, evidence=evidence)
    with_sources, without = figure(explanation, columns=4), figure(alone, columns=4)
    assert len(without.findobj(Axes)) < len(with_sources.findobj(Axes))
    assert not any(ax.get_title() == "source" for ax in without.findobj(Axes))


def test_unknown_formats(explanation: Explanation, tmp_path: Path) -> None:
    with pytest.raises(ProtoPFaithError, match=r"written as \.png, \.pdf, \.svg"):
        figure(explanation, tmp_path / "figure.bmp")
    assert list(tmp_path.iterdir()) == []

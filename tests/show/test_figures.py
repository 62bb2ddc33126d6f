from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.patches import PathPatch
from matplotlib.text import Text
from PIL import Image

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explanation
from protopfaith.show.figures import BLOCK, CASING, EDGES, figure
from protopfaith.show.heat import maps_of, scale_of
from protopfaith.show.wording.decision import deciding


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_figures_are_written_in_three_formats(explanation: Explanation, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"figure.{suffix}"
    figure(explanation, path, dpi=60)
    start = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[suffix]
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_a_figure_replaces_figures_and_no_photograph(
    explanation: Explanation, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"figure.{suffix}"
    explanation.figure(path, dpi=60)
    explanation.figure(path, dpi=50)
    photo = tmp_path / f"photo.{suffix}"
    Image.new("RGB", (8, 8)).save(photo, "PNG")
    before = photo.read_bytes()
    with pytest.raises(ProtoPFaithError, match="not overwritten"):
        explanation.figure(photo)
    assert photo.read_bytes() == before


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
        *explanation.title.split(),
        "share in the similarity",
        "more similar",
        "same as prototype",
        "ProtoPNet",
    ):
        assert words in text


def test_without_sources_and_with_two_classes(explanation: Explanation) -> None:
    alone = tuple(replace(one, source_side=None) for one in explanation.evidence)
    assert figure(replace(explanation, evidence=alone, versus=0)) is not None


def texts(drawing) -> list[str]:
    return [text.get_text() for text in drawing.findobj(Text)]


def test_no_room_is_left_for_sources_that_are_not_shown(explanation: Explanation) -> None:
    many = explanation.evidence * 4
    evidence = tuple(replace(one, source_side=None) for one in many)
    with_sources, without = (figure(replace(explanation, evidence=some)) for some in (many, evidence))
    assert without.get_figwidth() < with_sources.get_figwidth()
    assert "its source" in texts(with_sources)
    assert "its source" not in texts(without)


def test_five_prototypes_fill_a_row(explanation: Explanation) -> None:
    one = explanation.evidence[0]
    heights = {n: figure(replace(explanation, evidence=(one,) * n)).get_figheight() for n in (4, 5, 6)}
    assert heights[6] - heights[5] == pytest.approx(BLOCK)
    assert abs(heights[5] - heights[4]) < BLOCK / 2  # words above them may wrap otherwise


def test_a_rough_map_says_so_with_the_command_that_sharpens_it(explanation: Explanation) -> None:
    mine = explanation.class_map
    vague, sure = (
        replace(mine, standard_errors=factor * mine.values.abs(), sure=None) for factor in (0.5, 0.1)
    )
    rough = " ".join(texts(figure(replace(explanation, class_map=vague))))
    assert "Map: rough" in rough
    assert "--budget" in rough
    fine = replace(explanation, class_map=sure, precision=0.2)
    assert "rough" not in " ".join(texts(figure(fine)))


def test_both_scales_have_their_color_bar(explanation: Explanation) -> None:
    said = texts(figure(explanation))
    for scale in (scale_of([explanation.class_map]), scale_of(maps_of(explanation.evidence))):
        assert f"+{scale:.3g}" in said


def test_undecided_regions_can_be_hatched(explanation: Explanation) -> None:
    mine = explanation.class_map
    vague = replace(explanation, class_map=replace(mine, standard_errors=mine.values.abs() + 1, sure=None))
    hatched = [patch for patch in figure(vague, hatching=True).findobj(PathPatch) if patch.get_hatch()]
    assert hatched
    assert not [patch for patch in figure(vague).findobj(PathPatch) if patch.get_hatch()]


def test_unknown_formats(explanation: Explanation, tmp_path: Path) -> None:
    with pytest.raises(ProtoPFaithError, match=r"written as \.png, \.pdf, \.svg"):
        figure(explanation, tmp_path / "figure.bmp")
    assert list(tmp_path.iterdir()) == []


def test_prototypes_stand_in_the_order_of_the_report_with_their_evidence(explanation: Explanation) -> None:
    drawn = [text for text in texts(figure(explanation)) if re.match(r"\d+\. prototype", text)]
    assert [int(text.split()[2]) for text in drawn] == [one.prototype for one in explanation.ranked][
        : len(drawn)
    ]
    best = deciding(explanation)
    assert best is not None
    assert drawn[0].startswith(f"1. prototype {best.prototype}")
    assert f"evidence {explanation.share_of(best.prototype):+.2g}" in drawn[0]
    assert not any("\N{GREEK CAPITAL LETTER PSI}" in text for text in drawn)


def test_names_of_compared_classes_do_not_overprint_their_neighbors(explanation: Explanation) -> None:
    """Without source images blocks are narrow: long names and numbers go on in lines of their own."""
    named = replace(
        explanation.evidence[0],
        source_side=None,
        class_name="Black-footed Albatross of the South",
        distance=12345.678,
    )
    drawing = figure(replace(explanation, evidence=(named,) * 5, versus=0))
    drawn = [text for text in drawing.findobj(Text) if re.match(r"\d+\. prototype", text.get_text())]
    boxes = [text.get_window_extent() for text in drawn]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    below = next(text for text in drawing.findobj(Text) if text.get_text() == "this image")
    assert boxes[0].y0 >= below.get_window_extent().y1


def test_the_compared_class_is_among_the_probabilities(explanation: Explanation) -> None:
    last = int(explanation.probabilities.argmin())
    said = next(t for t in texts(figure(replace(explanation, versus=last))) if t.startswith(explanation.name))
    assert explanation.class_names[last] in " ".join(said.split())


def test_every_outline_has_a_light_casing(explanation: Explanation) -> None:
    """A dark line alone is lost on dark colors, and one of a hair's width on any."""
    wide = [
        (str(to_hex(lines.get_edgecolor()[0])), float(lines.get_linewidth()[0]))
        for lines in figure(explanation).findobj(PolyCollection)
    ]
    drawn = [place for place, (color, _) in enumerate(wide) if color in EDGES.values()]
    assert drawn
    for place in drawn:
        assert wide[place][1] >= 0.5
        assert wide[place - 1] == ("#ffffff", pytest.approx(wide[place][1] + CASING))

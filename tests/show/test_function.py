"""Page, figure and notebook of a function's explanation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from protopfaith.explanation import FunctionExplanation, explain_function
from protopfaith.show.function import adds_up, function_figure, lead, remarks, render_function_report


@pytest.fixture(scope="module")
def found() -> FunctionExplanation:
    def function(x: torch.Tensor) -> torch.Tensor:
        bright = x[:, :, :16].mean((1, 2, 3))
        return torch.stack([bright, -x[:, :, 16:, 16:].mean((1, 2, 3))], 1)

    image = torch.ones(3, 32, 32) + 0.1 * torch.rand(3, 32, 32)
    names = ["<b>bright & top</b>", "dark"]
    return explain_function(function, image, names=names, players=8, budget=256, name="<i>an image</i>")


def test_the_page_is_whole_and_escapes_names(found: FunctionExplanation, tmp_path: Path) -> None:
    text = found.report(tmp_path / "why.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;bright &amp; top&lt;/b&gt;" in text
    assert "<b>bright" not in text
    assert "<i>an image" not in text
    assert "http" not in text.replace("http-equiv", "")
    assert text.count('type="radio"') == 2
    assert render_function_report(found) == text


def test_the_words_say_what_adds_up_and_how_sure(found: FunctionExplanation) -> None:
    one = found.outputs[0]
    assert f"to {one.value:.4g} with none" in adds_up(one)
    said = " ".join(remark.text for remark in remarks(found))
    assert "relative error" in said
    assert "of 16 regions are colored" in said
    page = render_function_report(found)
    assert "What raises it lies" in page
    assert page.count("sum: the output") == len(found.outputs)


def test_the_page_says_first_how_sharp_its_map_is(found: FunctionExplanation) -> None:
    one = found.outputs[0]
    rough = replace(one.regions, standard_errors=one.regions.values.abs().max() + 0 * one.regions.values)
    page = render_function_report(replace(found, outputs=(replace(one, regions=rough),)))
    top = page[: page.index("<main>")]
    assert "<strong>rough</strong>" in top
    assert "A larger budget sharpens it." in top
    assert "A larger budget sharpens it." not in render_function_report(found)


def test_rounding_errors_are_no_value(found: FunctionExplanation) -> None:
    assert lead(replace(found.outputs[0], empty=3e-15)).count("hidden it is 0.") == 1


def test_the_figure_has_a_map_for_each_output(found: FunctionExplanation, tmp_path: Path) -> None:
    for suffix in ("png", "svg", "pdf"):
        found.figure(tmp_path / f"why.{suffix}", dpi=50)
        assert (tmp_path / f"why.{suffix}").stat().st_size > 1000
    drawn = function_figure(found)
    assert (
        len(drawn.axes[0].images) == 2 * (1 + len(found.outputs)) - 1
    )  # maps, image, and a bar for each map


def test_a_notebook_shows_the_image_and_the_maps(found: FunctionExplanation) -> None:
    html = found._repr_html_()
    assert html.count("<img") == 3
    assert "dark" in html


def test_what_no_region_changes_needs_no_larger_budget(tmp_path: Path) -> None:
    found = explain_function(lambda x: torch.ones(len(x), 1), torch.rand(3, 64, 64), players=16, budget=256)
    assert "No region changes it." in lead(found.outputs[0])
    said = " ".join(remark.text for remark in remarks(found))
    assert "no region changes it" in said
    found.report(tmp_path / "page.html")
    assert "No region changes it." in (tmp_path / "page.html").read_text()
    assert "larger budget" not in said

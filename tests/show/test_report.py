"""The report as a file; see `test_browser.py` for what a reader sees."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace

import torch

from protopfaith.explanation import Explainer, Explanation, PrototypeEvidence, SecondBaseline, SourcePart
from protopfaith.explanation.regions import Agreement
from protopfaith.show.heat import ends_of, maps_of, scale_of
from protopfaith.show.report import render_report
from protopfaith.show.wording.decision import deciding
from protopfaith.show.wording.numbers import percent


def island(page: str) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL).group(1))  # type: ignore[union-attr]


def test_a_page_is_self_contained(explanation: Explanation) -> None:
    page = render_report(explanation)
    assert not re.search(r"https?://|//[a-z]+\.", page)
    for link in re.findall(r'(?:src|href)="([^"]*)"', page):
        assert link.startswith(("data:", "#"))
    assert "a &lt;bird&gt; &amp; more" in page
    assert "<bird>" not in page


def test_names_are_escaped_exactly_once(explanation: Explanation) -> None:
    names = ("a <b> & c", *explanation.class_names[1:])
    page = render_report(replace(explanation, class_names=names, target=0, versus=1))
    assert "a <b>" not in page
    assert "&amp;lt;" not in page
    assert "a &lt;b&gt; &amp; c" in page
    assert island(page)["maps"][0]["minus"] == "It speaks against a <b> & c."  # the script sets it as text


def test_the_numbers_in_it_are_those_of_the_explanation(explanation: Explanation) -> None:
    data = island(render_report(explanation))
    mine = explanation.class_map
    assert torch.allclose(torch.tensor(data["maps"][0]["values"]).double(), mine.evidence, rtol=1e-3)
    assert torch.allclose(torch.tensor(data["maps"][0]["errors"]).double(), mine.standard_errors, rtol=1e-3)
    # After the outputs, the prototype that decides on the test image: similarity, so minus the distance.
    one, best = data["maps"][1 + len(explanation.other_maps)], deciding(explanation)
    assert best is not None
    assert torch.allclose(torch.tensor(one["values"]).double(), -best.test.values, rtol=1e-3)
    labels = data["labels"][data["maps"][0]["labels"]]
    runs, (xs, ys) = labels["runs"], (labels["xs"], labels["ys"])
    cells = [player for player, length in zip(runs[::2], runs[1::2], strict=True) for _ in range(length)]
    grid = torch.tensor(cells).view(len(ys) - 1, len(xs) - 1)
    pixels = grid.repeat_interleave(torch.tensor(ys).diff(), 0).repeat_interleave(torch.tensor(xs).diff(), 1)
    assert torch.equal(pixels, mine.players.labels)


def test_no_placeholder_is_left(explanation: Explanation) -> None:
    page = render_report(explanation)
    text = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    assert not re.search(r"[{}]|\$[a-z]", text)


def test_it_says_how_far_it_can_be_trusted(explanation: Explanation) -> None:
    page = html.unescape(render_report(explanation))
    for words in (
        "How faithful is this?",
        f"{explanation.evaluations:,} evaluations",
        explanation.method,
        "add up",
        "Known limits",
        percent(explanation.precision),
    ):
        assert words in page
    missed = replace(explanation, precision_asked=0.001, reached=False)
    assert "did not suffice for ±0.1%" in render_report(missed)
    unknown = replace(
        explanation,
        method="dasp",
        class_map=replace(
            explanation.class_map, standard_errors=torch.full_like(explanation.class_map.values, torch.nan)
        ),
    )
    assert "gives no standard errors" in render_report(unknown)
    other = SecondBaseline("blur", explanation.class_map, Agreement(0.3, 0.5, 4), {})
    page = render_report(replace(explanation, second=other))
    assert "correlates with this one by 0.30" in page
    assert "The two disagree" in page


def test_duplicates_are_grayed(explanation: Explanation) -> None:
    first, second = explanation.evidence
    marked = replace(second, duplicate_of=first.prototype, duplicate_kind="identical")
    page = render_report(replace(explanation, evidence=(first, marked)))
    assert page.count('class="prototype duplicate"') == 1
    assert f"identical to prototype {first.prototype}" in page


def test_without_sources_and_with_two_classes(explanation: Explanation) -> None:
    alone = tuple(replace(one, source_side=None) for one in explanation.evidence)
    asked = replace(explanation, evidence=alone, versus=0, decomposition=explanation.runner_up)
    page = render_report(asked)
    assert "On its source image" not in page
    assert "and not" in page


def test_a_rough_map_says_so_on_top_with_the_command_that_sharpens_it(explanation: Explanation) -> None:
    mine, fine = explanation.class_map, replace(explanation, precision=0.2, temperature=1.0)
    size = float(mine.values.square().mean().sqrt())
    errors = torch.full_like(mine.values, 0.45 * size)
    rough = replace(fine, class_map=replace(mine, standard_errors=errors))
    page = html.unescape(render_report(rough))
    assert page.index("<strong>rough</strong>") < page.index("<main>")
    assert "does not make the decision less certain" in page
    assert "45%" in page
    assert "protopfaith explain RUN" in page
    others = html.unescape(render_report(replace(rough, class_map=mine, precision=0.6)))
    assert "Some maps of prototypes are rough." in others
    exact = replace(mine, standard_errors=torch.zeros_like(mine.values))
    assert 'class="banner"' not in render_report(replace(fine, class_map=exact, usual_distance=None))


def test_the_legend_is_that_of_the_map_above_it(explanation: Explanation) -> None:
    page = render_report(explanation)
    scales = re.findall(r"<span>[^<]*−([\d.e+-]+)</span>", page)
    maps = [explanation.class_map, *explanation.other_maps.values()]
    expected = [scale_of([one]) for one in maps] + [scale_of(maps_of(explanation.evidence))]
    assert sorted(scales) == sorted(f"{scale:.3g}" for scale in expected)


def test_a_map_without_colors_has_a_legend_without_numbers(explanation: Explanation) -> None:
    maps = [explanation.class_map, *explanation.other_maps.values()]
    nothing = replace(
        explanation.class_map, sure=torch.zeros(len(explanation.class_map.values), dtype=torch.bool)
    )
    page = html.unescape(render_report(replace(explanation, class_map=nothing, other_maps={})))
    assert page.count("of no region is it clear on which side it stands") == 1
    scales = re.findall(r"<span>[^<]*−([\d.e+-]+)</span>", page)
    assert scales == [f"{scale_of(maps_of(explanation.evidence)):.3g}"]
    assert "of no region is it clear on which side it stands" not in render_report(explanation)
    assert all(ends_of([one])[1] for one in maps)


def test_captions_name_the_class_that_is_compared(explainer: Explainer, pixels: torch.Tensor) -> None:
    asked = explainer.explain(pixels, versus="Racket Zeelark", players=24, budget=64, sources=False)
    page = html.unescape(render_report(asked))
    target = asked.class_names[asked.target]
    assert f"for {target} rather than Racket Zeelark" in page
    assert "Evidence for Racket Zeelark" in page
    assert "Racket Zeelark (" in page  # with its probability


def test_no_error_is_offered_that_is_not_known(explanation: Explanation) -> None:
    nothing = torch.full_like(explanation.class_map.values, torch.nan)
    unknown = replace(
        explanation, method="dasp", class_map=replace(explanation.class_map, standard_errors=nothing)
    )
    page = render_report(unknown)
    assert set(island(page)["maps"][0]["errors"]) == {None}
    assert "point at a region to see its own" not in page
    assert "gives no errors, so every region is colored" in page


def test_it_is_for_research(explanation: Explanation) -> None:
    assert "For research, not for diagnosis." in render_report(explanation)


def test_what_looks_like_nothing_known_is_said_on_top(explanation: Explanation) -> None:
    strange = render_report(replace(explanation, nearest_distance=3.0, usual_distance=2.0))
    assert strange.index("looks like nothing the network knows") < strange.index("<main>")


def test_the_prototype_that_the_answer_names_is_shown_beside_it(explanation: Explanation) -> None:
    page = render_report(explanation)
    best = deciding(explanation)
    assert best is not None
    assert page.index(f"Prototype {best.prototype}, a part of a training image") < page.index("<main>")
    alone = tuple(replace(one, source_side=None) for one in explanation.evidence)
    without = render_report(replace(explanation, evidence=alone))
    assert "a part of a training image" not in without
    assert f"Prototype {best.prototype} itself is not shown" in without
    parts = tuple(replace(one, source_side=None, source_part=_part(one)) for one in explanation.evidence)
    with_parts = render_report(replace(explanation, evidence=parts))
    assert with_parts.index("a part of a training image") < with_parts.index("<main>")
    assert "itself is not shown" not in with_parts
    assert with_parts.count("its source image</figcaption>") == len(parts)


def _part(one: PrototypeEvidence) -> SourcePart:
    assert one.source_side is not None
    return SourcePart(one.source_side.path, one.source_side.pixels, one.source_side.box)


def test_prototypes_stand_in_the_order_of_their_bars(explanation: Explanation) -> None:
    found = explanation.closeness
    assert found is not None
    for shares in (found.shares, -found.shares):
        asked = replace(explanation, closeness=replace(found, shares=shares), rival_closeness=None)
        ranked = found.prototypes[shares.argsort(descending=True)].tolist()
        assert [int(k) for k in re.findall(r"<h3>\d+\. Prototype (\d+)</h3>", render_report(asked))] == ranked


def test_what_an_empty_image_is_called_is_a_caution_only_where_it_is_the_same(
    explanation: Explanation,
) -> None:
    nothing = torch.zeros_like(explanation.probabilities)
    for label, cautioned in ((explanation.target, True), (explanation.target - 1, False)):
        empty = nothing.index_fill(0, torch.tensor([label % len(nothing)]), 1.0)
        page = render_report(replace(explanation, empty_probabilities=empty))
        assert ("Caution: an empty image would be called" in page) is cautioned
        assert page.count("The empty image (baseline") == 1
        assert page.index("How faithful is this?") < page.index("The empty image (baseline")


def test_every_output_can_be_chosen(explanation: Explanation) -> None:
    page = render_report(explanation)
    assert page.count('type="radio"') == 1 + len(explanation.other_maps)
    assert page.count(" checked") == 1


def test_where_the_object_is_known_the_share_outside_is_said(explanation: Explanation) -> None:
    assert "dashed line" not in render_report(explanation)
    height, width = explanation.class_map.players.labels.shape
    mask = torch.zeros(height, width, dtype=torch.bool)
    mask[:, : width // 2] = True
    mine = explanation.class_map
    speaking = replace(mine, values=mine.sign * mine.values.abs())  # whatever the small network thinks
    page = render_report(replace(explanation, class_map=speaking, mask=mask))
    outside = 1 - speaking.share_inside(mask)
    assert f"{percent(outside)} of the evidence for" in page
    assert "covers 50% of the image" in page
    assert 'class="frame mask"' in page


def test_the_true_class_is_said_where_it_is_known(explanation: Explanation) -> None:
    names, label = explanation.class_names, explanation.prediction
    sure = replace(explanation, probabilities=torch.eye(len(names))[label])
    right = html.unescape(render_report(replace(sure, true_class=label)))
    assert "whether that is right is not known" in render_report(sure)
    leaning = html.unescape(render_report(replace(explanation, true_class=label)))
    assert f"right: it is {names[label]}" not in leaning  # it could not tell
    assert f"it is {names[label]}" in leaning
    wrong = html.unescape(render_report(replace(explanation, true_class=label - 1)))
    assert f"right: it is {names[label]}" in right
    assert f"wrong: it is {names[label - 1]}" in wrong

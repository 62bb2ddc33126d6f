from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from protopfaith.explanation import Explainer, Explanation, explain
from protopfaith.shapley import ESTIMATORS
from protopfaith.show.report import render_report
from protopfaith.show.wording.numbers import percent
from protopfaith.show.wording.trust import remarks


def _said(explanation: Explanation) -> str:
    """The text of the page, without its markup."""
    page = re.sub(r"<(script|style).*?</\1>", "", render_report(explanation), flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", "", page))


@pytest.mark.parametrize(
    ("estimator", "options"), [("dasp", {"sizes": 2}), ("moment_path", {"nodes": 2, "factors": 2})]
)
def test_of_moment_propagation_nothing_is_said_that_is_not_so(
    explainer: Explainer, pixels: torch.Tensor, tmp_path: Path, estimator: str, options: dict
) -> None:
    found = explain(explainer, pixels, players=24, estimator=estimator, options=options)
    mine = found.class_map
    off = abs(float(mine.values.sum()) - mine.total) / abs(mine.total)
    assert off > 0.01  # so few sizes or nodes leave much out
    said = _said(found)
    assert f"off by {percent(off)} here" in said
    assert f"add up to {float(mine.values.sum()):+.4g}" in said
    assert "as they should" not in said
    assert "Before what was missing" not in said
    assert f"in {found.evaluations:,} passes; the network itself was not sampled" in said
    found.figure(path=tmp_path / "figure.svg")
    for text in ((tmp_path / "figure.svg").read_text(), found._repr_html_()):
        assert f"{found.evaluations:,} passes ({estimator}), relative error unknown" in text


def test_where_everything_is_shared_out_the_sums_are_said_to_have_been_off(explanation: Explanation) -> None:
    said = _said(explanation)
    assert "The values add up, as they should" in said
    assert "Before what was missing was shared out, the sums were off by" in said


def test_a_negative_total_is_explained(explanation: Explanation) -> None:
    for sign, said in ((1, False), (-1, True)):
        size = sign * (1 + abs(explanation.class_map.total))
        values = explanation.class_map.values - explanation.class_map.values.mean()
        values = values + size / len(values)
        mine = replace(explanation.class_map, values=values, total=size)
        turned = replace(explanation, class_map=mine, output="logit")
        assert any("That is below zero" in remark.text for remark in remarks(turned)) is said


def test_exact_values_add_up_by_themselves(explainer: Explainer, pixels: torch.Tensor) -> None:
    said = _said(explain(explainer, pixels, players=24, estimator="exact"))
    assert "The values add up, as they should" in said
    assert "shared out" not in said


def test_every_estimator_says_how_it_works() -> None:
    plain = ESTIMATORS.traits("not registered here").description
    assert all(ESTIMATORS.traits(name).description != plain for name in ESTIMATORS)


def test_a_network_says_what_its_own_maps_are_called(explanation: Explanation) -> None:
    named = replace(explanation, network={**explanation.network, "own_map": "a gentle map"})
    page = html.unescape(render_report(named))
    assert "A gentle map stands here for comparison" in page
    assert "ProtoPNet's own map" not in page

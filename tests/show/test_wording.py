from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from protopfaith.explanation import Explainer, Explanation, explain
from protopfaith.shapley import ESTIMATORS, Game, Players, estimate
from protopfaith.show.notebook import ShownAttribution
from protopfaith.show.report import render_report
from protopfaith.show.wording import faithful, percent


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0%"),
        (5e-5, "less than 0.01%"),
        (0.0014, "0.14%"),
        (0.034, "3.4%"),
        (0.5, "50%"),
        (0.9864, "99%"),
        (0.9986, "99.9%"),  # not 100% beside the other class's 0.14%
        (0.99999, "more than 99.9%"),
        (1.0, "100%"),
        (3.343, "334%"),
        (float("nan"), "an unknown share"),
    ],
)
def test_shares_are_rounded_without_claiming_all_or_nothing(share: float, text: str) -> None:
    assert percent(share) == text


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
        turned = replace(explanation, class_map=replace(explanation.class_map, values=values, total=size))
        assert ("That is below zero" in faithful(turned)) is said


def test_exact_values_add_up_by_themselves(explainer: Explainer, pixels: torch.Tensor) -> None:
    said = _said(explain(explainer, pixels, players=24, estimator="exact"))
    assert "The values add up, as they should" in said
    assert "shared out" not in said


@pytest.mark.parametrize(("method", "error"), [("moment_path", "unknown"), ("exact", "0%")])
def test_an_attribution_shows_its_error_only_where_it_is_known(method: str, error: str) -> None:
    image = torch.rand(1, 4, 4)
    game = Game(
        lambda x: torch.conv2d(x, torch.ones(1, 1, 4, 4)).relu()[:, :, 0, 0],
        image,
        Players.windows((4, 4), 2),
    )
    assert f"relative error {error}." in ShownAttribution(estimate(game, method))._repr_html_()


def test_every_estimator_says_how_it_works() -> None:
    plain = ESTIMATORS.traits("not registered here").description
    assert all(ESTIMATORS.traits(name).description != plain for name in ESTIMATORS)

"""Findings in the report."""

from __future__ import annotations

import pytest
import torch

from protopfaith.data import load_data
from protopfaith.explanation import Explainer, Explanation
from protopfaith.network import XProtoNet
from protopfaith.show.findings import ORDER, finding_cards
from protopfaith.show.pictures import Pictures
from protopfaith.show.report import render_report


@pytest.fixture(scope="module")
def explanation() -> Explanation:
    torch.manual_seed(0)
    data = load_data("birds_multilabel", size=32, train=32, validation=40, test=32)
    explainer = Explainer(
        XProtoNet("small", [*data.classes[:5], "<b>mask</b>"], 4, 8).eval(),
        preprocessing=data.preprocessing,
        images=data,
    )
    return explainer.explain(data.test.image(0), players=16, budget=64, sources=False, target=5)


def test_every_finding_has_a_card_and_present_ones_come_first(explanation: Explanation) -> None:
    cards = finding_cards(explanation.findings, explanation.target, explanation.pixels, Pictures())
    assert sorted(card.name for card in cards) == sorted(explanation.class_names)
    places = [ORDER.index(card.verdict) for card in cards]
    assert places == sorted(places)
    assert [card.name for card in cards if card.explained] == ["<b>mask</b>"]
    assert all(0 <= card.share <= 100 and card.picture is not None for card in cards)


def test_the_page_says_all_and_escapes_names(explanation: Explanation) -> None:
    page = render_report(explanation)
    assert "All findings" in page
    assert "its occurrence map" in page
    assert "ProtoPNet's own map" not in page
    assert "<b>mask</b>" not in page
    assert "&lt;b&gt;mask&lt;/b&gt;" in page
    assert "nan" not in page.lower().replace("finance", "")


def test_classes_have_no_cards(explanation: Explanation) -> None:
    assert finding_cards((), explanation.target, explanation.pixels, Pictures()) == []


def test_a_figure_names_what_prototypes_stand_for(explanation: Explanation) -> None:
    assert explanation.figure() is not None
    assert explanation._repr_html_()

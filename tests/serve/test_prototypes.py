"""Cards of prototypes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from protopfaith.serve.case import Case
from protopfaith.serve.prototypes import prototype_cards


def test_every_prototype_that_is_named_has_a_card_with_its_evidence(played: Case) -> None:
    explanation = played.explanation()
    view = prototype_cards(played, explanation)
    assert [card.number for card in view["cards"]] == [one.prototype for one in explanation.evidence]
    assert view["left_out"] < 0
    for card, one in zip(view["cards"], explanation.evidence, strict=True):
        assert one.class_name in card.sentence
        share = next(
            float(found.shares[found.prototypes == one.prototype])
            for found in (explanation.closeness, explanation.rival_closeness)
            if found is not None and one.prototype in found.prototypes
        )
        assert f"evidence {share:+.3g}." in card.sentence
        assert ("closer to it" in card.sentence) == (share > 0)


def test_pictures_are_those_of_the_image_and_of_the_source(played: Case) -> None:
    view = prototype_cards(played, played.explanation())
    for card in view["cards"]:
        assert card.there is not None
        assert card.here.image != card.there.image
    assert {image.uri.rpartition("/")[2] for image in view["shared"].images} <= played.images.keys()


def test_no_more_than_a_row_is_shown(played: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("protopfaith.serve.prototypes.MOST", 1)
    explanation = played.explanation()
    view = prototype_cards(played, explanation)
    assert len(view["cards"]) == 1
    assert view["left_out"] == len(explanation.evidence) - 1 > 0


def test_a_source_that_only_resembles_its_prototype_says_so(played: Case) -> None:
    explanation = played.explanation()
    first = explanation.evidence[0]
    assert first.source is not None
    alike = replace(first, source=replace(first.source, exact=False))
    told = replace(explanation, evidence=(alike, *explanation.evidence[1:]))
    cards = prototype_cards(played, told)["cards"]
    assert [card.origin for card in cards] == ["nearest to it", *["its source"] * (len(cards) - 1)]

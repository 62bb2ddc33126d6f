from __future__ import annotations

from dataclasses import replace

from protopfaith.explanation import Explanation
from protopfaith.show.heat import error_of
from protopfaith.show.wording.decision import how_sure, lead
from protopfaith.show.wording.numbers import percent


def test_the_lead_says_what_the_network_sees_and_what_is_explained(explanation: Explanation) -> None:
    names = explanation.class_names
    mine = replace(explanation, target=explanation.prediction)
    assert f"The network sees {names[explanation.prediction]}" in lead(mine)
    assert f"prototype {mine.evidence[0].prototype}" in lead(mine)
    other = replace(explanation, target=(explanation.prediction + 1) % len(names))
    assert "the class explained here" in lead(other)
    assert "the class explained here" not in lead(replace(explanation, target=explanation.prediction))


def test_a_rival_without_support_is_said_to_lack_it(explanation: Explanation) -> None:
    found = explanation.rival_closeness
    assert found is not None
    without = replace(found, shares=-found.shares.abs() - 1)
    assert "lacks support" in lead(replace(explanation, rival_closeness=without))
    supported = lead(replace(explanation, rival_closeness=replace(found, shares=found.shares.abs() + 1)))
    assert "support" in supported
    assert "lacks support" not in supported


def test_chips_say_how_sure_decision_and_map_are(explanation: Explanation) -> None:
    known = replace(explanation, nearest_distance=1.0, usual_distance=2.0, temperature=1.5)
    texts = " / ".join(chip.text for chip in how_sure(known))
    assert ", calibrated" in texts
    assert "as near to its prototypes as usual" in texts
    assert percent(error_of(explanation.class_map)) in texts
    strange = replace(known, nearest_distance=3.0, temperature=None)
    chips = {chip.text: chip.kind for chip in how_sure(strange)}
    assert chips["looks like nothing the network knows"] == "alert"
    assert any("not calibrated" in text for text in chips)


def test_explanations_of_earlier_versions_still_have_words(explanation: Explanation) -> None:
    old = replace(explanation, closeness=None, rival_closeness=None, rival=None, nearest_distance=None)
    assert "The network sees" in lead(old)
    assert not any("prototypes as usual" in chip.text for chip in how_sure(old))


def test_a_class_that_nothing_speaks_for_is_not_praised(explanation: Explanation) -> None:
    found = explanation.closeness
    assert found is not None
    other = (explanation.prediction + 1) % len(explanation.class_names)
    asked = replace(
        explanation,
        target=other,
        rival=explanation.prediction,
        closeness=replace(found, class_index=other, shares=-found.shares.abs()),
    )
    said = lead(asked)
    assert f"farther from all prototypes of {explanation.class_names[other]}" in said
    assert f"The class that it sees, {explanation.class_names[explanation.prediction]}" in said

from __future__ import annotations

from dataclasses import replace

from protopfaith.explanation import Explanation
from protopfaith.show.wording.decision import lead


def test_the_lead_says_what_the_network_sees_and_what_is_explained(explanation: Explanation) -> None:
    names = explanation.class_names
    mine = replace(explanation, target=explanation.prediction)
    assert f"The network sees {names[explanation.prediction]}" in lead(mine)
    assert f"prototype {mine.evidence[0].prototype}" in lead(mine)
    other = replace(explanation, target=(explanation.prediction + 1) % len(names))
    assert "the class explained here" in lead(other)
    assert "the class explained here" not in lead(replace(explanation, target=explanation.prediction))

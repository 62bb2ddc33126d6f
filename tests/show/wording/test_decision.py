from __future__ import annotations

import re
from dataclasses import replace

import torch

from protopfaith.explanation import Explanation
from protopfaith.show.wording.decision import deciding, lead
from protopfaith.show.wording.places import lies
from protopfaith.show.wording.verdicts import decision_verdict


def test_the_lead_says_what_the_network_sees_and_what_is_explained(explanation: Explanation) -> None:
    names = explanation.class_names
    sure = torch.nn.functional.one_hot(torch.tensor(explanation.prediction), len(names)).double()
    explanation = replace(explanation, probabilities=0.9 * sure + 0.1 * explanation.probabilities)
    mine = replace(explanation, target=explanation.prediction)
    assert f"The network sees {names[explanation.prediction]}" in lead(mine)
    best = deciding(mine)
    assert best is not None
    assert f"prototype {best.prototype}" in lead(mine)
    other = replace(explanation, target=(explanation.prediction + 1) % len(names))
    assert "the class explained here" in lead(other)
    assert "the class explained here" not in lead(replace(explanation, target=explanation.prediction))


def test_a_rival_without_support_is_said_to_lack_it(explanation: Explanation) -> None:
    found = explanation.rival_closeness
    assert found is not None
    without = replace(found, shares=-found.shares.abs() - 1)
    assert "has no prototype that is nearer" in lead(replace(explanation, rival_closeness=without))
    supported = lead(replace(explanation, rival_closeness=replace(found, shares=found.shares.abs() + 1)))
    assert "support" in supported
    assert "has no prototype that is nearer" not in supported


def test_a_class_that_lost_is_not_said_to_have_more_support(explanation: Explanation) -> None:
    found = explanation.rival_closeness
    assert found is not None
    race = explanation.runner_up
    assert race is not None
    supported = replace(explanation, rival_closeness=replace(found, shares=found.shares.abs() + 1e3))
    said = {
        ahead: lead(replace(supported, runner_up=replace(race, rest=race.rest + ahead - race.total)))
        for ahead in (2.0, -2.0)
    }
    assert "7.4 times less probable; most of its support comes from" in said[2.0]
    assert "more support than" in said[-2.0]
    assert "more support than" not in said[2.0]


def test_the_place_is_that_of_the_map_that_stands_below(explanation: Explanation) -> None:
    asked = replace(explanation, target=explanation.prediction)
    where = lies(asked.class_map)
    assert where is not None
    assert f"What speaks for it {where}." in lead(asked)
    mine = asked.class_map
    vague = replace(mine, standard_errors=torch.full_like(mine.values, 1e9), sure=None)
    assert "is not clear yet" in lead(replace(asked, class_map=vague))


def test_the_lead_has_no_bare_scores(explanation: Explanation) -> None:
    assert not re.search(r"[+-]\d", lead(explanation))
    assert not re.search(r"[+-]\d", lead(replace(explanation, closeness=None, rival_closeness=None)))


def test_explanations_of_earlier_versions_still_have_words(explanation: Explanation) -> None:
    old = replace(explanation, closeness=None, rival_closeness=None, rival=None, nearest_distance=None)
    assert "The network " in lead(old)


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
    assert f"farther from all of {explanation.class_names[other]}'s prototypes" in said
    assert f"The class that it sees, {explanation.class_names[explanation.prediction]}" in said


def test_the_lead_is_as_sure_as_the_verdict(explanation: Explanation) -> None:
    p = torch.full_like(explanation.probabilities, 0.01 / (len(explanation.class_names) - 2))
    p[explanation.prediction] = 0.51
    p[(explanation.prediction + 1) % len(p)] = 0.48
    close = replace(explanation, target=explanation.prediction, probabilities=p)
    assert decision_verdict(close).word == "toss-up"
    assert "cannot tell whether it is" in lead(close)
    strange = replace(close, nearest_distance=3.0, usual_distance=2.0)
    for said in (lead(strange), strange.title):
        assert all(explanation.class_names[label] in said for label in p.argsort(descending=True)[:2])
    assert "looks like nothing it knows" in lead(strange)
    assert "the nearest of its prototypes is number" in lead(strange)


def test_a_wrong_answer_is_corrected_at_once(explanation: Explanation) -> None:
    truth = (explanation.prediction + 1) % len(explanation.class_names)
    name = explanation.class_names[truth]
    assert f"That is wrong: it is {name}." in lead(replace(explanation, true_class=truth))
    assert "wrong" not in lead(replace(explanation, true_class=explanation.prediction))
    assert "wrong" not in lead(replace(explanation, true_class=None))


def test_after_a_correction_no_it_may_mean_either_class(explanation: Explanation) -> None:
    truth = (explanation.prediction + 1) % len(explanation.class_names)
    told = replace(explanation, target=explanation.prediction, true_class=truth)
    assert "peaks for it" not in lead(told)


def test_an_image_that_adds_nothing_to_the_empty_one_is_no_evidence(explanation: Explanation) -> None:
    names, mine = explanation.class_names, explanation.class_map
    same = torch.nn.functional.one_hot(torch.tensor(explanation.target), len(names)).double()
    faint = replace(mine, values=1e-3 * mine.values / mine.values.abs().sum())
    asked = replace(explanation, class_map=faint, empty_probabilities=same)
    assert "hardly anything in the image" in lead(asked)
    assert "hardly anything" not in lead(replace(asked, class_map=mine, empty_probabilities=1 - same))
    assert "hardly anything" not in lead(replace(asked, empty_probabilities=None))


def test_what_is_right_is_said_at_once_after_what_is_wrong(explanation: Explanation) -> None:
    """Not after what speaks for it, which is not wrong."""
    said = explanation.prediction
    truth = (said + 1) % len(explanation.class_names)
    strange = replace(explanation, target=said, true_class=truth, nearest_distance=3.0, usual_distance=2.0)
    name = explanation.class_names[truth]
    assert f"looks like nothing it knows. That is wrong: it is {name}. What speaks most" in lead(strange)

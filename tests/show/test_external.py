from __future__ import annotations

import math

from protopfaith.evaluation.external_results import DIFFERENCE, EXTERNAL, INTERNAL, ExternalEvaluation, Row
from protopfaith.evaluation.metrics.bootstrap import SCORES, Interval
from protopfaith.evaluation.metrics.classification import Classification
from protopfaith.show.external import comparison_figure


def evaluation(*names: str) -> ExternalEvaluation:
    scores = dict.fromkeys(SCORES, Interval(0.8, 0.7, 0.9))
    rows = tuple(Row(name, 10, 5, scores) for name in names)
    unknown = Row("sex: $F$", 1, 1, dict.fromkeys(SCORES, Interval(math.nan, math.nan, math.nan)))
    nothing = Classification(("a",), ((1,),), (1.0,), (1.0,), (1.0,))
    return ExternalEvaluation("clinic_$_$", nothing, (*rows, unknown), (), (), 10)


def test_every_set_has_a_line_but_the_difference() -> None:
    figure = comparison_figure(evaluation(f"{EXTERNAL}: clinic", INTERNAL, DIFFERENCE, "age: 0 to 17"))
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert [label.split("  ")[0] for label in labels] == [
        INTERNAL,
        f"{EXTERNAL}: clinic",
        "age: 0 to 17",
        "sex: $F$",
    ]
    assert "not defined" in [text.get_text() for text in figure.axes[0].texts]
    figure.canvas.draw()


def test_it_is_drawn_without_an_internal_test_set() -> None:
    comparison_figure(evaluation(f"{EXTERNAL}: clinic")).canvas.draw()

from __future__ import annotations

from protopfaith.network import DistinctPrototypes
from protopfaith.training.collapse import signs_of_collapse

ALL = DistinctPrototypes(((0,), (1,)), (1, 1), 2)
HALF = DistinctPrototypes(((0, 1), (2, 3)), (1, 1), 4)


def test_what_is_worth_a_sentence() -> None:
    assert signs_of_collapse(0.9, 0.89, ALL) == []
    assert signs_of_collapse(None, None, ALL) == []
    assert len(signs_of_collapse(0.9, 0.5, HALF)) == 2
    assert "Only 2 of 4 prototypes" in signs_of_collapse(None, None, HALF)[0]

from __future__ import annotations

from protopfaith.network import DistinctPrototypes
from protopfaith.training.collapse import signs_of_collapse, signs_of_shortfall

ALL = DistinctPrototypes(((0,), (1,)), (1, 1), 2)
HALF = DistinctPrototypes(((0, 1), (2, 3)), (1, 1), 4)


def test_what_is_worth_a_sentence() -> None:
    assert signs_of_collapse(0.9, 0.89, ALL) == []
    assert signs_of_collapse(None, None, ALL) == []
    assert len(signs_of_collapse(0.9, 0.5, HALF)) == 2
    assert "Only 2 of 4 prototypes" in signs_of_collapse(None, None, HALF)[0]


def test_prototypes_that_cost_much_are_said() -> None:
    assert "cost 0.485 of the plain" in signs_of_shortfall(0.895, 0.41, 48)[0]
    assert signs_of_shortfall(0.9, 0.82, 10_000) != []
    assert signs_of_shortfall(0.9, 0.82, 50) == []  # four images
    for plain, prototypes, images in ((None, 0.5, 50), (0.9, None, 50), (0.9, 0.1, 0), (0.5, 0.9, 50)):
        assert signs_of_shortfall(plain, prototypes, images) == []

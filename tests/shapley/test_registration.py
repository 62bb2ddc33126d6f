import doctest

import pytest

from protopfaith.shapley import Traits, registration
from protopfaith.shapley.registration import Estimators


def test_an_estimator_says_what_it_is_where_it_is_registered():
    known = Estimators("estimator")

    @known.register("slow", per_output=True, description="taken one by one")
    def slow(game, **plan): ...

    known.register("plain")(slow)
    assert known["slow"] is slow
    assert known.traits("slow") == Traits("taken one by one", per_output=True)
    assert known.traits("plain") == Traits()
    del known["slow"]
    assert known.traits("slow") == Traits()


def test_a_name_is_taken_once_and_keeps_what_was_said():
    known = Estimators("estimator")
    known.register("one", per_output=True)(lambda game, **plan: None)
    with pytest.raises(ValueError, match="already"):
        known.register("one")(lambda game, **plan: None)
    assert known.traits("one").per_output


def test_what_cannot_be_said_is_an_error():
    with pytest.raises(TypeError, match="samples"):
        Estimators("estimator").register("one", samples=True)


def test_examples_in_docstrings_run():
    assert doctest.testmod(registration).failed == 0

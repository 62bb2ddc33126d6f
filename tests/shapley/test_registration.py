import doctest
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protopfaith.cli.names import check_estimator
from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley import ESTIMATORS, Traits, registration
from protopfaith.shapley.registration import Estimators, typed_options
from protopfaith.typed import Unparsed


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


def guess(
    game: Any,
    *,
    budget: int = 0,
    times: int = 1,
    share: float = 0.5,
    bold: bool = False,
    words: str = "",
    few: int | None = None,
    file: str | Path | None = None,
    how: "functools.partial[int] | None" = None,
) -> None: ...


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("times", 3, 3),
        ("times", np.int64(3), 3),
        ("times", Unparsed("3"), 3),
        ("share", 1, 1.0),
        ("share", Unparsed("1e-3"), 1e-3),
        ("bold", np.bool_(True), True),
        ("bold", Unparsed("false"), False),
        ("words", Unparsed("2024"), "2024"),
        ("few", None, None),
        ("few", Unparsed("null"), None),
        ("file", Path("a/b"), Path("a/b")),
        ("file", "a/b", "a/b"),
        ("how", "anything", "anything"),  # a type that only the estimator can judge
    ],
)
def test_options_get_the_types_of_the_signature(option, value, expected):
    found = typed_options("guess", guess, {option: value})[option]
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("value", ["many", 2.5, True, None, [3]])
def test_a_wrong_type_is_said_in_the_same_words_wherever_it_comes_from(value):
    with pytest.raises(ProtoPFaithError) as python:
        typed_options("guess", guess, {"times": value})
    expected = f"The option 'times' of the estimator 'guess' is a whole number, not {value!r}."
    assert str(python.value) == expected
    with pytest.raises(ProtoPFaithError) as typed:
        typed_options("guess", guess, {"times": Unparsed(str(value))})
    assert str(typed.value) == expected.replace(repr(value), repr(str(value)))


def test_what_an_estimator_is_told_anyway_is_no_option():
    for option in ("budget", "game", "tines"):
        with pytest.raises(ProtoPFaithError, match=f"no option '{option}'"):
            typed_options("guess", guess, {option: 1})


def test_estimators_without_annotations_take_what_they_take():
    bare = functools.partial(lambda game, **options: None)
    assert typed_options("bare", bare, {"anything": "goes"}) == {"anything": "goes"}


@pytest.mark.parametrize(
    ("typed", "meant"), [("Default", "default"), ("EXACT", "exact"), ("Adaptive_Owen", "adaptive_owen")]
)
def test_names_in_another_case_are_known_by_their_own(typed: str, meant: str) -> None:
    for ask in (lambda: ESTIMATORS[typed], lambda: check_estimator(typed)):
        with pytest.raises(ProtoPFaithError, match=f"did you mean '{meant}'"):
            ask()

"""What is asked for in a word."""

from __future__ import annotations

import numpy as np
import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.specs import (
    AUTOCAST,
    OUTPUTS,
    baseline_numbers,
    check_autocast,
    check_output,
    check_precision,
    check_token,
    class_number,
    parse_players,
)


def test_a_baseline_has_numbers_or_none() -> None:
    assert (baseline_numbers("blur:8"), baseline_numbers("mean")) == ([8.0], [])
    for wrong in ("blur:", "blur:x", "color:0,,1", "color:0;1"):
        with pytest.raises(ProtoPFaithError, match="expected numbers after the colon"):
            baseline_numbers(wrong)


def test_players_are_windows_or_superpixels() -> None:
    assert [parse_players(spec) for spec in (16, "16", np.int64(16), "coarse")] == [16, 16, 16, "coarse"]
    for wrong in ("superpixels:", "superpixels:x", "superpixels:0", "windows:3", "-1", 1.5):
        with pytest.raises(ProtoPFaithError, match="are not known"):
            parse_players(wrong)


def test_a_class_has_a_name_and_a_number() -> None:
    birds = ["finch", "7", "gull"]
    assert [class_number(name, birds) for name in ("gull", 0, "2", "7")] == [2, 0, 2, 1]
    for wrong in ("3", -1, "guul"):
        with pytest.raises(ProtoPFaithError, match="There is no class"):
            class_number(wrong, birds)


def test_a_precision_is_above_zero() -> None:
    check_precision(None)
    check_precision(0.1)
    for wrong in (0, -0.0, -1):
        with pytest.raises(ProtoPFaithError, match="above zero"):
            check_precision(wrong)


def test_where_classes_are_called_by_numbers_texts_are_names() -> None:
    known = ["0", "1", "10", "2"]
    assert [class_number(name, known) for name in ("10", "2", 2)] == [2, 3, 2]
    with pytest.raises(ProtoPFaithError, match="There is no class '3'"):
        class_number("3", known)


def test_names_that_are_none_are_refused() -> None:
    for name in OUTPUTS:
        check_output(name)
    for name in AUTOCAST:
        check_autocast(name)
    with pytest.raises(ProtoPFaithError, match="did you mean 'margin'"):
        check_output("marg")
    with pytest.raises(ProtoPFaithError, match="use auto, off, bfloat16, float16"):
        check_autocast("float")


def test_a_token_is_long_enough_and_fits_into_an_address() -> None:
    check_token(None)
    check_token("long-enough")
    for wrong in ("short", "with a space", "x" * 201):
        with pytest.raises(ProtoPFaithError, match="at least 8 letters"):
            check_token(wrong)

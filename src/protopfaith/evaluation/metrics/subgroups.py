"""Which images count together when a network is judged by sex, age, site or device."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from protopfaith.arguments import shown
from protopfaith.data.dicom import age_in_years
from protopfaith.errors import ProtoPFaithError
from protopfaith.registry import did_you_mean

USUAL = ("sex", "gender", "age", "site", "device")
AGES = (18, 40, 65)
"""Years that part the bins of ages."""
MOST_VALUES = 12
"""A column of more different texts names images, not subgroups; one of more different numbers is binned."""
MOST_DIGITS = 9
"""Of a whole number that is written as it is, without an exponent."""
EXACT = 17
"""Digits that tell any two floating-point numbers apart."""
UNKNOWN = "not known"
OLDEST = 150  # years


def subgroups(
    about: Sequence[Mapping[str, str]], columns: Sequence[str] | None = None
) -> tuple[dict[str, dict[str, list[int]]], list[str]]:
    """The images of each value of each column, and sentences about columns that are left out.

    Ages become bins (0 to 17, 18 to 39, 40 to 64, 65 and more), other numbers of many values become quarters,
    and texts stay as they are. Images without a value are a subgroup, too.

    Args:
        about: what is known of each image, by column
        columns: which ones; None: those of sex, gender, age, site and device that are there

    Raises:
        ProtoPFaithError: if a column that was asked for is nowhere, or has too many values

    >>> about = [{"sex": "F", "age": "70"}, {"sex": "M", "age": "12"}, {"sex": "F"}]
    >>> subgroups(about)[0]["sex"]
    {'F': [0, 2], 'M': [1]}
    >>> subgroups(about)[0]["age"]
    {'0 to 17': [1], '65 and more': [0], 'not known': [2]}
    """
    known = list(dict.fromkeys(column for one in about for column in one))
    wanted = [column for column in USUAL if column in known] if columns is None else list(columns)
    found, notes = {}, []
    for column in wanted:
        if column not in known:
            known_ones = did_you_mean(column, known) if known else "give a CSV file that has one."
            raise ProtoPFaithError(f"The data has no column {column!r} to make subgroups of; {known_ones}")
        given = [one.get(column, "").strip() for one in about]
        values = _binned(column, given)
        notes += _odd_ages(column, given)
        if len(set(values) - {UNKNOWN}) > MOST_VALUES:
            sentence = f"The column {column!r} has more than {MOST_VALUES} different values"
            if columns is not None:
                raise ProtoPFaithError(f"{sentence}, too many for subgroups; give another column.")
            notes.append(f"{sentence} and gives no subgroups.")
            continue
        found[column] = _members(values)
    return found, notes


def _odd_ages(column: str, values: Sequence[str]) -> list[str]:
    """A sentence about numbers that are nobody's age."""
    odd = [value for value in values if _is_number(value) and _years(value) is None]
    if column != "age" or not odd:
        return []
    return [
        f"The column 'age' has {len(odd)} values that are no age from 0 to {OLDEST} years, such as "
        f"{shown(odd[0])}; they count as {UNKNOWN}."
    ]


def _members(values: Sequence[str]) -> dict[str, list[int]]:
    members: dict[str, list[int]] = {}
    for index, value in enumerate(values):
        members.setdefault(value, []).append(index)
    return dict(sorted(members.items(), key=lambda item: (item[0] == UNKNOWN, _order(item[0]), item[0])))


def _order(value: str) -> float:
    """Bins by their first number, texts by themselves."""
    try:
        return float(value.split(maxsplit=1)[0].lstrip("<"))
    except (ValueError, IndexError):
        return -math.inf


def _binned(column: str, values: Sequence[str]) -> list[str]:
    if column == "age":
        ages = [_years(value) for value in values]
        if any(age is not None for age in ages):
            return [UNKNOWN if age is None else _age_bin(age) for age in ages]
    numbers = [_number(value) for value in values]
    given = [number for number, value in zip(numbers, values, strict=True) if value]
    if any(number is None for number in given) or len(set(given)) <= MOST_VALUES:
        return [value or UNKNOWN for value in values]
    finite = [number for number in numbers if number is not None]
    ends = np.quantile(finite, [0, 0.25, 0.5, 0.75, 1]).tolist()
    quarters = [None if number is None else sum(number > end for end in ends[1:-1]) for number in numbers]
    labels = _labels(numbers, quarters)
    return [UNKNOWN if quarter is None else labels[quarter] for quarter in quarters]


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _is_number(value: str) -> bool:
    try:
        return not math.isnan(float(value))
    except ValueError:
        return False


def _years(value: str) -> float | None:
    number = _number(value)
    if number is None:
        number = age_in_years(value)
    return number if number is not None and 0 <= number <= OLDEST else None


def _age_bin(age: float) -> str:
    """
    >>> _age_bin(17.5), _age_bin(18), _age_bin(90)
    ('0 to 17', '18 to 39', '65 and more')
    """
    place = sum(age >= end for end in AGES)
    if place == len(AGES):
        return f"{AGES[-1]} and more"
    return f"{(0, *AGES)[place]} to {AGES[place] - 1}"


def _labels(numbers: Sequence[float | None], bins: Sequence[int | None]) -> dict[int, str]:
    """The least and the largest number of each bin, with as many digits as tell them from all others.

    >>> _labels([2008, 2011, None, 2012, 0.5], [1, 1, None, 2, 0])
    {1: '2008 to 2011', 2: '2012', 0: '0.5'}
    """
    members: dict[int, list[float]] = {}
    for number, place in zip(numbers, bins, strict=True):
        if number is not None and place is not None:
            members.setdefault(place, []).append(number)
    ends = {place: (min(inside), max(inside)) for place, inside in members.items()}
    different = {end for pair in ends.values() for end in pair}
    whole = len(str(int(max(map(abs, different)))))  # 1234 rather than 1.23e+03
    digits = whole if 3 < whole <= MOST_DIGITS else 3
    while digits < EXACT and len({f"{end:.{digits}g}" for end in different}) < len(different):
        digits += 1
    texts = {end: f"{end:.{digits}g}" for end in different}
    return {
        place: texts[low] if low == high else f"{texts[low]} to {texts[high]}"
        for place, (low, high) in ends.items()
    }

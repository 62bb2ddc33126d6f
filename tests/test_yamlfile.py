from __future__ import annotations

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.yamlfile import parse_yaml

LAUGHS = "a: &a [1,1,1,1,1,1,1,1]\n" + "".join(
    f"{c}: &{c} [{','.join([f'*{b}'] * 8)}]\n" for b, c in zip("abcdefg", "bcdefgh", strict=True)
)


def test_plain_values() -> None:
    text = "a: [1, -2, 0.5, 1.0e-3, true, no, null, text]\nb: {c: 'x'}\nd: &x [1]\ne: *x\n"
    assert parse_yaml(text, "It") == {
        "a": [1, -2, 0.5, 0.001, True, False, None, "text"],
        "b": {"c": "x"},
        "d": [1],
        "e": [1],
    }


@pytest.mark.parametrize("text", ["010", "0x1f", "1:30", "2020-01-01", "12:30:45", "0o7", "1_"])
def test_what_only_yaml_takes_for_a_number_or_a_date_is_a_text(text: str) -> None:
    assert parse_yaml(text, "It") == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\na: 2", "'a' is there twice"),
        ("[1, 2]: 3", "a key must be a word"),
        ("&a [*a]", "contains itself"),
        ("[" * 100, "nests"),
        ("a: [", "not valid YAML"),
        ("!!int x", "tag"),
        ("!!python/name:os.system", "not valid YAML"),
        ("x" * 300_000, "characters"),
        (LAUGHS, "values"),
    ],
)
def test_what_is_wrong_is_one_sentence(text: str, words: str) -> None:
    with pytest.raises(ProtoPFaithError, match=words) as error:
        parse_yaml(text, "The recipe")
    assert str(error.value).startswith("The recipe")
    assert len(str(error.value)) < 600


def test_what_is_wrong_is_told_with_its_place():
    with pytest.raises(ProtoPFaithError, match=r"valid YAML \(line 2, column 2: ") as caught:
        parse_yaml("a: [1\nb: {", "The recipe")
    assert "unicode" not in str(caught.value)

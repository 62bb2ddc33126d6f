"""YAML from anybody: plain values, read strictly.

Stricter than YAML 1.1: a key twice is an error, a number has no leading zero (010 is no 8), dates and times
are texts. Files that would grow or nest beyond any recipe are refused before they are read.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

import yaml

from protopfaith.errors import ProtoPFaithError

LONGEST = 200_000  # characters
DEEPEST = 60  # brackets within brackets, or sections within sections
MOST_VALUES = 20_000  # with every alias counted as what it stands for


class _Strict(yaml.SafeLoader):
    """Without duplicate keys, octal and sexagesimal numbers, and dates."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        if isinstance(node, yaml.MappingNode):
            seen = set()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise yaml.constructor.ConstructorError(
                        None, None, "a key must be a word", key.start_mark
                    )
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value[:60]!r} is there twice", key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


_INT = re.compile(r"^[-+]?(?:0|[1-9][0-9]{0,39}(?:_[0-9]+)*)$")
_PLAIN = {"tag:yaml.org,2002:int", "tag:yaml.org,2002:timestamp"}
_Strict.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in entries if tag not in _PLAIN]
    for first, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Strict.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))
_FLOAT = re.compile(
    r"""^(?:[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+]?[0-9]+)?
    |\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?
    |[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$""",
    re.X,
)
for _first, _entries in _Strict.yaml_implicit_resolvers.items():
    _Strict.yaml_implicit_resolvers[_first] = [
        (tag, _FLOAT if tag == "tag:yaml.org,2002:float" else pattern) for tag, pattern in _entries
    ]


def parse_yaml(text: str, what: str) -> Any:
    """The plain values in a YAML text; `what` begins the sentence about anything that is wrong.

    >>> parse_yaml("a: [1, 010]", "The recipe")
    {'a': [1, '010']}
    """
    if len(text) > LONGEST:
        raise ProtoPFaithError(
            f"{what} has {len(text):,} characters, more than {LONGEST:,}; give a YAML file of ours."
        )
    if _depth(text) > DEEPEST:
        raise ProtoPFaithError(f"{what} nests brackets more than {DEEPEST} deep; give a YAML file of ours.")
    try:
        values = yaml.load(text, Loader=_Strict)  # a safe loader: nothing but plain values
    except yaml.YAMLError as error:
        raise ProtoPFaithError(f"{what} is not valid YAML ({_where(error)}); fix it.") from error
    except RecursionError as error:
        raise ProtoPFaithError(f"{what} nests too deeply; give a YAML file of ours.") from error
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError) as error:
        message = " ".join(str(error).split())[:100]
        raise ProtoPFaithError(
            f"{what} holds a value that its tag does not allow ({message}); fix it."
        ) from error
    _check_size(values, what)
    return values


def _where(error: yaml.YAMLError) -> str:
    """What is wrong, and in which line and column."""
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    if mark is None or not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(str(error).split()).replace(' in "<unicode string>"', "")[:300]
    return f"line {mark.line + 1}, column {mark.column + 1}: {str(error.problem)[:200]}"


def _depth(text: str) -> int:
    deepest = depth = 0
    for character in text:
        if character in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "]}":
            depth -= 1
    return deepest


def _check_size(values: Any, what: str) -> None:
    """Raises if aliases make it endless or larger than any recipe."""
    counts: dict[int, int] = {}
    open_ones: set[int] = set()

    def count(value: Any, depth: int) -> int:
        if not isinstance(value, (dict, list, set, tuple)):
            return 1
        if id(value) in counts:
            return counts[id(value)]
        if id(value) in open_ones or depth > DEEPEST:
            raise ProtoPFaithError(f"{what} contains itself, or nests too deeply; fix it.")
        open_ones.add(id(value))
        inner = [*value.keys(), *value.values()] if isinstance(value, dict) else list(value)
        counts[id(value)] = 1 + sum(count(one, depth + 1) for one in inner)
        open_ones.discard(id(value))
        return counts[id(value)]

    total = count(values, 0)
    if total > MOST_VALUES:
        raise ProtoPFaithError(
            f"{what} stands for more than {MOST_VALUES:,} values; write out only those that you need."
        )

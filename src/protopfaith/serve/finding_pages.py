"""How good a network is at several findings: what is found, what is missed, and the images of each number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from protopfaith.serve.networks import Network
from protopfaith.serve.question import is_short_number

CELLS = {
    "there and found": (1, 1),
    "there, not found": (1, 0),
    "not there, but found": (0, 1),
    "not there, not found": (0, 0),
}
"""Whether a finding is there, and whether the network finds it."""
MOST_SHOWN = 120
Cell = tuple[int, int, int]  # finding, whether it is there, whether it is found


def finding_evaluation(network: Network, asked: Cell | None) -> dict[str, Any]:
    """The table of the findings, and the images of one of its numbers.

    Args:
        network: the run.
        asked: whose images are shown.
    """
    names, counts = network.class_names, _counts(network)
    rows = [
        {
            "name": name,
            "cells": [_cell(counts, name, (number, *pair)) for pair in CELLS.values()],
        }
        for number, name in enumerate(names)
    ]
    said = None
    if asked is not None:
        said = f"{names[asked[0]]}: {next(text for text, pair in CELLS.items() if pair == asked[1:])}"
    return {
        "network": network,
        "rows": rows,
        "columns": list(CELLS),
        "heading": "What is found, and what is missed",
        "first": "finding",
        "note": "Each finding at its threshold. Only test images of which it is known count; a number opens "
        "its images.",
        "lead": _lead(network),
        "cell": said,
        "images": [] if asked is None else images_of(network, asked)[:MOST_SHOWN],
    }


def finding_cell(network: Network, asked: Mapping[str, str]) -> Cell | None:
    """The number of the table that an address asks for; None where it asks for none that is there."""
    texts = [asked.get(name, "") for name in ("finding", "there", "found")]
    if not all(map(is_short_number, texts)):
        return None
    finding, there, found = map(int, texts)
    return (finding, there, found) if finding < len(network.class_names) and max(there, found) < 2 else None


def images_of(network: Network, cell: Cell) -> list[int]:
    """The test images that one number of the table counts."""
    finding, *wanted = cell
    return [i for i, known, answer in _judged(network) if [known[finding], finding in answer] == wanted]


def _judged(network: Network) -> Iterator[tuple[int, Sequence[int], Sequence[int]]]:
    """Test images that the network has answered on, what is known of each, and the answer."""
    if isinstance(network.test, tuple):
        return
    for index, answer in enumerate(network.predictions):
        if answer is not None:
            yield index, network.test.records[index].findings, answer


def _counts(network: Network) -> Counter[Cell]:
    """The numbers of the table."""
    return Counter(
        (finding, there, int(finding in answer))
        for _, known, answer in _judged(network)
        for finding, there in enumerate(known)
    )


def _cell(counts: Counter[Cell], name: str, cell: Cell) -> dict[str, Any]:
    finding, there, found = cell
    count = counts[cell]
    total = count + counts[finding, there, 1 - found]
    what = f"with {name}" if there else f"without {name}"
    says = f"{count} of {total} images {what}, {'found' if found else 'not found'}"
    return {
        "asks": f"finding={finding}&there={there}&found={found}",
        "right": there == found,
        "count": count,
        "share": count / max(total, 1),
        "says": says,
    }


def _lead(network: Network) -> str:
    known = sum(answer is not None for answer in network.predictions)
    if not len(network.test):
        return "The run's test images are not there."
    rest = network.about_rest("judged")
    if not known:
        return rest
    right = sum(
        answer is not None and not network.is_wrong(i) for i, answer in enumerate(network.predictions)
    )
    return f"In {right:,} of {known:,} test images every finding that is known of is right. {rest}".strip()

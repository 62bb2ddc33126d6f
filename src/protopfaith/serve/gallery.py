"""The test images of a run, for choosing one."""

from __future__ import annotations

from typing import Any

from protopfaith.errors import ProtoPFaithError
from protopfaith.serve.networks import Network
from protopfaith.serve.pages import render
from protopfaith.serve.question import is_short_number

PAGE = 48


def gallery_of(network: Network, label: str, wrong: bool, start: str) -> dict[str, Any]:
    """A page of the gallery.

    Args:
        network: whose test images they are.
        label: only of this class or finding, by its number; all where it is empty.
        wrong: only those that the network gets wrong.
        start: how many to leave out in the beginning.
    """
    wanted = _number(label, len(network.class_names) - 1) if label else None
    first = _number(start, 10**9)
    chosen = _chosen(network, wanted, wrong)
    shown = chosen[first : first + PAGE]
    html = render(
        "gallery.html",
        run=network.number,
        images=[_one(network, i) for i in shown],
        nothing=_nothing(network),
    )
    later = first + PAGE
    return {
        "html": html,
        "next": later if later < len(chosen) else None,
        "count": _count(network, len(chosen), wrong),
        "classes": list(network.class_names),
        "kind": "Finding" if network.outcome == "several" else "Class",
    }


def _chosen(network: Network, label: int | None, wrong: bool) -> list[int]:
    test = network.test
    if isinstance(test, tuple):
        return []
    return [
        index
        for index in range(len(test))
        if (label is None or label in network.shows(index)) and (not wrong or network.is_wrong(index))
    ]


def _one(network: Network, index: int) -> dict[str, Any]:
    found = network.predictions[index]
    return {
        "index": index,
        "label": network.names(network.shows(index)),
        "wrong": network.is_wrong(index),
        "predicted": "" if found is None else network.names(found),
    }


def _count(network: Network, count: int, wrong: bool) -> str:
    text = f"{count:,} image{'' if count == 1 else 's'}"
    left = sum(found is None for found in network.predictions)
    if not wrong or not left:
        return text
    what = "could not be classified" if network.stopped else "are not classified yet"
    return f"{text} so far; {left:,} {what}"


def _nothing(network: Network) -> str:
    if network.data is None:
        return "The run's images are not where its recipe says; give --root, or bring an image of your own."
    return "No test image is like that."


def _number(text: str, most: int) -> int:
    if not is_short_number(text) or int(text) > most:
        raise ProtoPFaithError("The gallery is asked for by numbers.")
    return int(text)

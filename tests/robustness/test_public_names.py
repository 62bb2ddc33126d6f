"""Every public name of Python with one wrong argument at a time: the answer is a sentence of ours, or it is
taken; no exception of somebody else's."""

from __future__ import annotations

import inspect
import itertools
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import protopfaith as pf
from protopfaith import evaluation, network, shapley
from protopfaith.moments import RULES
from tests.robustness.harness import Case, Outcome, Place, judge
from tests.robustness.public_names import LEFT_OUT, PACKAGES, REFUSED, right

JUNK: dict[str, Any] = {
    "nothing": None,
    "minus one": -1,
    "not a number": math.nan,
    "a number of 31 digits": 10**30,
    "text": "x",
    "no text": "",
    "a null byte": "\0",
    "an empty list": [],
    "a list of nothing": [None],
    "a mapping": {"x": None},
    "an object": object(),
    "a complex number": 1j,
    "a number in a tensor": torch.tensor(1.0),
    "a tensor of another shape": torch.zeros(2, 2),
    "an empty tensor": torch.zeros(0),
    "a tensor without content": torch.zeros(2, 2, device="meta"),
    "letters in an array": np.array(["a"]),
    "numbers without end": itertools.count,
    "a function of nothing": lambda *_, **__: None,
    "a tensor with gaps": torch.ones(2, 2).to_sparse(),
}
"""A class stands for a new one of its kind, as it is used up."""

RECORDS = {
    "Record",
    "Entry",
    "Sample",
    "Listing",
    "ImageData",
    "External",
    "PrototypeSource",
    "Turn",
    "Traits",
}
"""What users make of their own data: nothing else ever looks at all of it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        found = tmp_path_factory.mktemp("names")
        patch.chdir(found)
        patch.setenv("PROTOPFAITH_CACHE", str(found / "cache"))
        rules = dict(RULES)
        yield found
        RULES.clear()
        RULES.update(rules)


def test_every_public_name_is_tried(folder: Path) -> None:
    public = {name: getattr(package, name) for package in PACKAGES for name in package.__all__}
    called = {name for name, one in public.items() if inspect.isclass(one) or inspect.isroutine(one)}
    tried = {re.match(r"\w+", name)[0] for name in right(folder)}  # type: ignore[index]
    assert called - tried - set(LEFT_OUT) == set()
    assert set(LEFT_OUT) - called == set()


def test_what_is_right_is_taken(folder: Path) -> None:
    found = {name: _outcome(*one, folder) for name, one in right(folder).items()}
    wrong = {name: one.text for name, one in found.items() if name not in REFUSED and one.kind != "accepted"}
    assert not wrong


def test_no_wrong_argument_ends_in_an_exception_of_others(folder: Path) -> None:
    faults, count = [], 0
    for name, (function, arguments) in right(folder).items():
        for argument in arguments:
            for kind, junk in JUNK.items():
                junk = junk() if inspect.isclass(junk) else junk
                outcome = _outcome(function, {**arguments, argument: junk}, folder)
                count += 1
                if outcome.kind not in ("fine", "accepted"):
                    faults.append(f"{name} with {kind} as {argument}: {outcome.kind} {outcome.text[-300:]}")
    assert not faults, "\n".join(faults)
    assert count > 5_000


def test_nothing_is_taken_as_part_of_a_record(folder: Path) -> None:
    """An object without any meaning fits nowhere."""
    faults = [
        f"{name} with an object as {argument}"
        for name, (function, arguments) in right(folder).items()
        for argument in arguments
        if name in RECORDS
        and _outcome(function, {**arguments, argument: object()}, folder).kind == "accepted"
    ]
    assert not faults


NEAR_MISSES: dict[str, Callable[[], Any]] = {
    "labels with gaps": lambda: pf.Players(torch.ones(4, 4).long().to_sparse()),
    "maps without a position": lambda: network.minimum_over_positions(torch.rand(2, 3, 4, 0)),
    "pixels beyond float32": lambda: pf.Players.superpixels(torch.rand(3, 8, 8).double() * 1e300, 4),
    "more than all pixels": lambda: evaluation.aopc(torch.rand(2, 11), up_to=1e308),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_the_right_type_with_nothing_to_compute_with_is_refused(name: str) -> None:
    with pytest.raises(pf.ProtoPFaithError):
        NEAR_MISSES[name]()


def test_truth_values_are_numbers() -> None:
    found, _ = shapley.redistribute(torch.ones(1, 4).bool(), torch.ones(1, 4), torch.ones(1).bool())
    assert float(found.sum()) == 1


def _outcome(function: Callable[..., Any], arguments: dict[str, Any], folder: Path) -> Outcome:
    return judge(Case("a name", call=lambda _: function(**arguments)), Place(folder, folder))

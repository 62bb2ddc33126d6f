"""Every public name of Python with one wrong argument at a time: the answer is a sentence of ours, or it is
taken; no exception of somebody else's."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

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
}


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
                outcome = _outcome(function, {**arguments, argument: junk}, folder)
                count += 1
                if outcome.kind not in ("fine", "accepted"):
                    faults.append(f"{name} with {kind} as {argument}: {outcome.kind} {outcome.text[-300:]}")
    assert not faults, "\n".join(faults)
    assert count > 5_000


def _outcome(function: Callable[..., Any], arguments: dict[str, Any], folder: Path) -> Outcome:
    return judge(Case("a name", call=lambda _: function(**arguments)), Place(folder, folder))

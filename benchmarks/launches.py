"""How many operations one estimate starts beside the network's, and how often it waits for their results.

    python benchmarks/launches.py                          # 1,000, 25 and 5 outputs, 2,048 evaluations
    python benchmarks/launches.py --outputs 5 --list       # by function, not by file alone
    python benchmarks/launches.py --method owen

A GPU does most of these operations faster than the CPU can ask for them, so their number is what they cost.
It can be counted on a CPU, with a game whose function does next to nothing and is not counted: all
operations on tensors that compute or copy, by the function of the package that asked for them. Views and
memory that is set aside cost no launch. A factorization counts once, though a GPU launches several kernels
for it. What is made once for a set of players or a device is made before: the second estimate is counted.

Waits are the places where Python asks for a number: `bool(tensor)`, `.tolist()`, an index by a mask and the
like. A GPU then runs out of work while the CPU reads. A function that hands results back counts once.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from rich.table import Table
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import protopfaith
from opening import make_console
from protopfaith.shapley import DEFAULT_METHOD, Game, Players, estimate

PACKAGE = str(Path(protopfaith.__file__).parent)
# Memory is set aside, or a tensor looked at in another way, or read, which is counted as a wait.
FREE = {"empty", "empty_like", "empty_strided", "new_empty", "detach", "lift_fresh", "_unsafe_view"}
FREE |= {"_local_scalar_dense", "alias", "_reshape_alias"}
READING = {"item", "tolist", "numpy", "cpu", "equal", "nonzero", "masked_select", "unique", "argwhere"}
READING |= {"__bool__", "__float__", "__int__", "__index__", "__array__"}
ON_THE_WAY = "_on_the_way"  # copies that do not wait: those of a result arrive together
Origin = tuple[str, str]  # file, function


class Launches:
    """Operations and waits by their origin, while `counting`."""

    def __init__(self) -> None:
        self.operations: Counter[Origin] = Counter()
        self.waits: Counter[Origin] = Counter()
        self.counts = True

    @contextmanager
    def counting(self) -> Iterator[None]:
        with _Dispatched(self), _Called(self):
            yield

    def uncounted(self, function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        """The function, whose operations do not count."""

        def silent(images: Tensor) -> Tensor:
            self.counts = False
            try:
                return function(images)
            finally:
                self.counts = True

        return silent

    def add(self, to: Counter[Origin]) -> None:
        if self.counts:
            to[_origin()] += 1

    def places(self, counts: Counter[Origin], *, functions: bool = True) -> Counter[str]:
        """By file and function, or by file alone."""
        found: Counter[str] = Counter()
        for (file, function), count in counts.items():
            found[f"{file} {function}" if functions else file] += count
        return found


class _Dispatched(TorchDispatchMode):
    """Sees every operation that reaches a device."""

    def __init__(self, found: Launches):
        super().__init__()
        self.found = found

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        if not func.is_view and name not in FREE:
            self.found.add(self.found.operations)
        return func(*args, **(kwargs or {}))


class _Called(TorchFunctionMode):
    """Sees what Python asks of tensors: reading them leaves no other trace on a CPU."""

    def __init__(self, found: Launches):
        super().__init__()
        self.found = found

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        if (name in READING or _by_mask(name, args)) and _origin()[1] != ON_THE_WAY:
            self.found.add(self.found.waits)
        return func(*args, **(kwargs or {}))


def _by_mask(name: str, args: tuple[Any, ...]) -> bool:
    """Whether a tensor of truths says which entries are taken: how many, a GPU must tell first."""
    if name != "__getitem__":
        return False
    places = args[1] if isinstance(args[1], tuple) else (args[1],)
    return any(isinstance(place, Tensor) and place.dtype == torch.bool for place in places)


def _origin() -> Origin:
    """The innermost function of the package that is being run."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(PACKAGE):
            name = getattr(code, "co_qualname", code.co_name).replace(".<locals>", "")
            return str(Path(code.co_filename).relative_to(PACKAGE)), name.split(".<")[0]
        frame = frame.f_back  # type: ignore[assignment]
    return "", ""


def of_one_estimate(
    outputs: int, budget: int = 2048, method: str = DEFAULT_METHOD, pairs: bool = False
) -> Launches:
    """What an estimate of a game of 196 players costs, once another one has made what is kept.

    Args:
        outputs: of the game.
        budget: evaluations.
        method: the estimator.
        pairs: whether at most two players act together, so that the default draws complements.
    """
    weights = torch.randn(196, outputs, generator=torch.Generator().manual_seed(0))
    found = Launches()

    def function(images: Tensor) -> Tensor:
        sums = images.flatten(1) @ weights
        return sums.square() if pairs else sums.relu()

    game = Game(
        found.uncounted(function), torch.ones(1, 14, 14), Players.windows((14, 14), 1), batch_size=512
    )
    estimate(game, method, budget=budget)
    with found.counting():
        estimate(game, method, budget=budget, seed=1)
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--outputs", default="1000,25,5")
    add("--evaluations", type=int, default=2048)
    add("--method", default=DEFAULT_METHOD)
    add("--pairs", action="store_true", help="of a game in which at most two players act together")
    add("--list", action="store_true", help="by function, not by file alone")
    options = parser.parse_args(arguments)
    outputs = [int(count) for count in options.outputs.split(",")]
    found = [of_one_estimate(count, options.evaluations, options.method, options.pairs) for count in outputs]
    console = make_console()
    title = f"of one estimate by {options.method}, {options.evaluations:,} evaluations, 196 players"
    rows = [one.places(one.operations, functions=options.list) for one in found]
    console.print(_table(f"operations {title}", outputs, rows))
    console.print(_table(f"waits {title}", outputs, [one.places(one.waits) for one in found]))


def _table(title: str, outputs: list[int], rows: list[Counter[str]]) -> Table:
    """A row for every place, those with most in front."""
    table = Table("where", *(f"{count:,} outputs" for count in outputs), title=title)
    for place in sorted(set().union(*rows), key=lambda place: (-max(row[place] for row in rows), place)):
        table.add_row(place, *(f"{row[place]:,}" for row in rows))
    table.add_section()
    table.add_row("all", *(f"{row.total():,}" for row in rows))
    return table


if __name__ == "__main__":
    main()

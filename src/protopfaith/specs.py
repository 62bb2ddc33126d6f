"""What is asked for in a word, such as superpixels:60 or bfloat16: known without torch, so that the command
line answers a typo at once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from protopfaith.arguments import finite_number, shown, whole_number
from protopfaith.errors import ProtoPFaithError
from protopfaith.registry import did_you_mean

OUTPUTS = ("margin", "logit", "versus", "log_probability")  # the last one is not linear
AUTOCAST = ("auto", "off", "bfloat16", "float16")
SUPERPIXELS = "superpixels:"
LARGEST_WINDOW = 100_000
DEFAULT_METHOD = "adaptive_owen"  # of the estimators
DEFAULT = "default"  # its name for people
LEAST_BUDGET = 66  # of the default estimator, where all coalitions would be more
WINDOW = 16  # pixels, where nobody says otherwise
CPU_WINDOWS = 8  # rows and columns of windows at most, where a CPU decides
# What every estimator is told by the names of its plan: no options of its own.
PLAN = frozenset({"game", "budget", "precision", "seed", "resume", "progress", "outputs"})
FEW_PLAYERS = "coarse"  # about 7 x 7 windows


def parse_players(spec: Any) -> int | str:
    """Players that are told by a number or a text: the side of windows, or superpixels:60. Numbers as texts,
    from a command line, are numbers.

    >>> parse_players("16"), parse_players("superpixels:60")
    (16, 'superpixels:60')
    """
    if isinstance(spec, str) and spec == FEW_PLAYERS:
        return spec
    if isinstance(spec, str) and spec.isdecimal():
        spec = int(spec[:20])
    if isinstance(spec, int) or hasattr(spec, "__index__"):  # of any library
        return whole_number(spec, "The side of the windows that are players", least=1, most=LARGEST_WINDOW)
    text = spec if isinstance(spec, str) else ""
    number = text.removeprefix(SUPERPIXELS)
    if number == text or not number.isdecimal() or not 1 <= int(number[:20]) <= LARGEST_WINDOW**2:
        raise ProtoPFaithError(
            f"The players {shown(spec)} are not known; give the side of windows in pixels (16), "
            "superpixels:60, or a label image of your own (in Python, H x W, int64)."
        )
    return text


def baseline_numbers(spec: str) -> list[float]:
    """The numbers after the colon of a baseline; none where there is no colon.

    >>> baseline_numbers("color:0,0.5,1"), baseline_numbers("zero")
    ([0.0, 0.5, 1.0], [])
    """
    _, colon, text = spec.partition(":")
    try:
        return [float(number) for number in text.split(",")] if colon else []
    except ValueError:
        raise ProtoPFaithError(
            f"The baseline {spec} cannot be read; expected numbers after the colon, as in blur:8 or "
            "color:0,0.5,1."
        ) from None


def check_output(name: str) -> None:
    """Raises if nothing of that name can be explained."""
    if name not in OUTPUTS:
        raise ProtoPFaithError(
            f"There is no output {shown(name)} to explain; {did_you_mean(str(name), OUTPUTS)}"
        )


def check_option_names(estimator: str, options: Iterable[str], parameters: Iterable[str]) -> None:
    """Raises if an estimator with these parameters has no option of a name."""
    known = set(parameters) - PLAN
    for option in sorted(set(options) - known):
        raise ProtoPFaithError(
            f"The estimator {estimator!r} has no option {option!r}; "
            f"{did_you_mean(option, known or ['(none)'])}"
        )


def class_number(name: str | int, known: Sequence[str]) -> int:
    """The number of a class, given by its name or number; raises if none of the `known` ones is meant.

    Where all classes are called by numbers, a text is a name: 3 is none of the classes 0, 1, 10 and 2.

    >>> class_number("dog", ["cat", "dog"]), class_number("0", ["cat", "dog"])
    (1, 0)
    """
    if isinstance(name, str) and name in known:
        return list(known).index(name)
    is_name = isinstance(name, str) and all(one.isdecimal() for one in known)
    is_number = not is_name and (isinstance(name, (str, int)) or getattr(name, "shape", None) == ())
    number = int(name) if is_number and str(name)[:20].isdecimal() and len(str(name)) < 20 else -1
    if 0 <= number < len(known):
        return number
    close = name[:200] if isinstance(name, str) else shown(name)
    raise ProtoPFaithError(f"There is no class {shown(name)} in this network; {did_you_mean(close, known)}")


def check_autocast(name: object) -> None:
    """Raises if a number format has no such name."""
    if not isinstance(name, str) or name not in AUTOCAST:
        raise ProtoPFaithError(f"The autocast type {shown(name)} is not known; use {', '.join(AUTOCAST)}.")


def check_once(explainers: Sequence[str]) -> None:
    """Raises if an explainer is named twice.

    >>> check_once(["ours", "owen"])
    """
    twice = [name for name, count in Counter(explainers).items() if count > 1]
    if twice:
        raise ProtoPFaithError(f"The explainer {shown(twice[0])} is named twice; name each of them once.")


def check_dropped(drop: Sequence[int] | None, tolerance: float | None) -> None:
    """Raises if prototypes that go are named twice, or found in two ways.

    >>> check_dropped([3, 17], None)
    """
    if drop is None:
        return
    if tolerance is not None:
        raise ProtoPFaithError(
            "A tolerance finds the duplicates that go, but the prototypes that go are named; give one of "
            "them (--prototypes or --tolerance)."
        )
    twice = [index for index, count in Counter(drop).items() if count > 1]
    if twice:
        raise ProtoPFaithError(f"Prototype {twice[0]} is to go twice; name each of them once.")


def check_precision(precision: Any) -> None:
    """Raises if a precision is given that no estimate could have.

    >>> check_precision(0.1)
    """
    if precision is not None and not finite_number(precision, "The precision", most=1) > 0:
        raise ProtoPFaithError(
            f"The precision is {precision}; give a relative error above zero, such as 0.1."
        )


def no_gpu(accelerator: str) -> ProtoPFaithError:
    """What is said where a recipe asks for a GPU and there is none."""
    return ProtoPFaithError(
        f"The recipe asks for a GPU (compute.accelerator={accelerator}), but torch finds none; "
        "set compute.accelerator=auto or cpu."
    )


def check_token(token: str | None) -> None:
    """Raises if what visitors of a server must know is easily guessed, or does not fit into an address."""
    if token is not None and not re.fullmatch(r"[A-Za-z0-9_-]{8,200}", token):
        raise ProtoPFaithError(
            "A token is at least 8 letters, digits, - or _; leave it out to have one made up where needed."
        )

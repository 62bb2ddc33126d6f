"""Functions that a caller gives to be told how far the work is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from protopfaith.arguments import shown
from protopfaith.errors import ProtoPFaithError

STAGES = ("what is done", "how much of it is done", "how much is expected")
"""What functions of three arguments are told."""
EVALUATIONS = ("evaluations done", "evaluations expected")
"""What those of two are told."""


class _Raised(BaseException):
    """Carries what a caller's function raised past those who explain exceptions of other functions."""


def check_listener(listener: Any, told: tuple[str, ...]) -> None:
    """Raises if a function cannot be called with what it is told; None is nobody to tell.

    Args:
        listener: the caller's function, or None
        told: its arguments, for people

    >>> check_listener(print, EVALUATIONS)
    """
    if listener is None:
        return
    words = ", ".join(told)
    if not callable(listener):
        raise ProtoPFaithError(f"The progress must be a function of ({words}), not {shown(listener)}.")
    try:
        signature = inspect.signature(listener)
    except (TypeError, ValueError):  # of a function in C, which does not tell
        return
    try:
        signature.bind(*told)
    except TypeError:
        raise ProtoPFaithError(
            f"The progress is called with {len(told)} arguments ({words}), which the given function does not "
            "take; give one of as many."
        ) from None


@contextmanager
def passing_through(listener: Callable[..., object] | None) -> Iterator[Callable[..., None] | None]:
    """The function, such that what it raises arrives outside as it is: nobody between takes it for an
    exception of the function that is explained, or of an estimator.

    Args:
        listener: the caller's function, or None

    >>> with passing_through(print) as tell:
    ...     tell(1, 2)
    1 2
    """
    if listener is None:
        yield None
        return
    raised: list[Exception] = []

    def tell(*args: object) -> None:
        try:
            listener(*args)
        except Exception as error:
            raised.append(error)
            raise _Raised from error

    try:
        yield tell
    except _Raised:
        if not raised:  # of somebody further out
            raise
        raise raised[0] from raised[0].__cause__

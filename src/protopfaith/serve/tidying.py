"""Memory that is given back when cases are forgotten."""

from __future__ import annotations

import ctypes
import gc


def give_back() -> bool:
    """Returns freed memory to the system, where the C library keeps it for later; False: there is no more.

    >>> give_back()
    False
    """
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # only glibc keeps so much, and has this
        return False
    return False

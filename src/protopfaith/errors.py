"""The one exception that is meant for people, and the one that others can act on: memory ran out."""


class ProtoPFaithError(Exception):
    """Something that the user can fix.

    The message is one sentence: what was wrong, what was expected, what to do. The command line prints it
    without a traceback; in Python it is an ordinary exception.

    Args:
        message: the sentence

    >>> import protopfaith as pf
    >>> try:
    ...     pf.Players.windows((32, 32), 0)
    ... except pf.ProtoPFaithError as error:
    ...     print(error)
    Windows of 0x0 pixels on an image of 32x32 make no players; give sizes of at least one pixel.
    """


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out, on any device: with less at a time, all may go well.

    >>> is_out_of_memory(RuntimeError("CUDA out of memory.")), is_out_of_memory(RuntimeError("a wrong shape"))
    (True, False)
    """
    words = ("out of memory", "can't allocate memory")  # of a GPU, and of torch's allocator on a CPU
    told = isinstance(error, RuntimeError) and any(one in str(error).lower() for one in words)
    return told or isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"

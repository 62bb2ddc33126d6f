"""The one exception that is meant for people."""


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

"""The one exception that is meant for people."""


class ProtoPFaithError(Exception):
    """Something that the user can fix.

    The message is one sentence: what was wrong, what was expected, what to do. The command line prints it
    without a traceback; in Python it is an ordinary exception.
    """

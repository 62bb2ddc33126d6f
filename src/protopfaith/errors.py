"""The one exception that is meant for people."""


class ProtoPFaithError(Exception):
    """Something the user can mend.

    The message is one sentence: what was wrong, what was expected, what to do. The command line prints it
    without a traceback; in Python it is an ordinary exception.
    """

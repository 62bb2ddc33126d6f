"""The program: `protopfaith`, and `python -m protopfaith`."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from protopfaith.interruption import INTERRUPTION


def main() -> None:
    """Runs the command line, which may be interrupted from the first moment on."""
    try:
        INTERRUPTION.watch()
        from protopfaith.cli import main as run  # takes a moment
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(INTERRUPTION.code)
    run()


def leave_out_folder() -> None:
    """`python -m` looks for modules in the current folder first, where a file `random.py` would be taken for
    Python's own; `--import` still finds those that it names."""
    with suppress(OSError):  # the folder is gone, as `main` says
        here = os.getcwd()  # noqa: PTH109  (spelled as Python has it in the path)
        is_ours = os.path.isdir(f"{here}/protopfaith")  # noqa: PTH112  (the package itself lies there)
        if sys.path[:1] == [here] and not getattr(sys.flags, "safe_path", False) and not is_ours:
            del sys.path[0]


if __name__ == "__main__":
    leave_out_folder()
    main()

"""The program: `protopfaith`, and `python -m protopfaith`."""

from __future__ import annotations

import sys

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


if __name__ == "__main__":
    main()

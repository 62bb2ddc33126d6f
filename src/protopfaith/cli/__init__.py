"""The command line: one thin command per verb, no logic of its own.

Each module adds its commands to `app` when it is imported.
"""

from protopfaith.cli import data, demo, explaining, judging, training
from protopfaith.cli.app import main

__all__ = ["data", "demo", "explaining", "judging", "main", "training"]

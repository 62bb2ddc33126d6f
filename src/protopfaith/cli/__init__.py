"""The command line: one thin command per verb, no logic of its own.

Each module adds its command to the program when it is imported; their order is that of the help.
"""

from protopfaith.cli import (  # isort: skip
    demo,
    recipes,
    encoders,
    data,
    training,
    evaluate,
    predict,
    explain,
    bulk,
    prototypes,
    faithfulness,
    prune,
)
from protopfaith.cli.app import main

__all__ = [
    "bulk",
    "data",
    "demo",
    "encoders",
    "evaluate",
    "explain",
    "faithfulness",
    "main",
    "predict",
    "prototypes",
    "prune",
    "recipes",
    "training",
]

"""The command line: one thin command per verb, no logic of its own.

Each module adds its command to the program when it is imported; their order is that of the help.
"""

from protopfaith.cli import (  # isort: skip
    demo,
    recipes,
    encoders,
    data,
    training,
    convert,
    evaluate,
    predict,
    explain,
    bulk,
    prototypes,
    parts,
    faithfulness,
    serve,
    prune,
)
from protopfaith.cli.app import main

__all__ = [
    "bulk",
    "convert",
    "data",
    "demo",
    "encoders",
    "evaluate",
    "explain",
    "faithfulness",
    "main",
    "parts",
    "predict",
    "prototypes",
    "prune",
    "recipes",
    "serve",
    "training",
]

"""Runs shapiq's approximators for another process, which holds the game: its newest versions need a newer
Python than a network may run on.

    python3.12 -m venv newer && newer/bin/pip install "shapiq[proxy]"
    python benchmarks/agreement.py RUN --shapiq-python newer/bin/python

Needs numpy and shapiq alone. The first message names the approximators that are there; then each request is a
name, the number of players, the budget and the seed, answered by coalitions to evaluate until the values are
known.
"""

from __future__ import annotations

import inspect
import os
import sys
from multiprocessing.connection import Client, Connection
from typing import Any

import numpy as np

# Approximators of Shapley values, with options beyond those that say so.
NAMES: dict[str, dict[str, Any]] = {
    "KernelSHAP": {"pairing_trick": True},
    "LeverageSHAP": {},
    "PermutationSamplingSV": {},
    "SVARM": {},
    "OwenSamplingSV": {},
    "UnbiasedKernelSHAP": {},
    "RegressionMSR": {},
    "ProxySHAP": {"adjustment": True},
    "OddSHAP": {},
    "PolySHAP": {},
    "ShaplEIG": {},
}


def main() -> None:
    address, key = sys.argv[1], os.environ["SHAPIQ_WORKER_KEY"].encode()
    with Client(address, authkey=key) as connection:
        connection.send(available())
        while (request := connection.recv()) is not None:
            try:
                connection.send(("values", approximate(connection, *request)))
            except Exception as error:  # whatever a library of others raises
                connection.send(("error", f"{type(error).__name__}: {error}"))


def available() -> list[str]:
    from shapiq import approximator

    return [name for name in NAMES if hasattr(approximator, name)]


def approximate(connection: Connection, name: str, n: int, budget: int, seed: int) -> np.ndarray:
    from shapiq import approximator

    def play(coalitions: np.ndarray) -> np.ndarray:
        connection.send(("evaluate", np.atleast_2d(coalitions).astype(bool)))
        return connection.recv()

    kind = getattr(approximator, name)
    known = inspect.signature(kind.__init__).parameters
    usual = {"n": n, "random_state": seed, "index": "SV", "max_order": 1, **NAMES[name]}
    result = kind(**{key: value for key, value in usual.items() if key in known}).approximate(budget, play)
    return np.array([float(result[(i,)]) for i in range(n)])


if __name__ == "__main__":
    main()

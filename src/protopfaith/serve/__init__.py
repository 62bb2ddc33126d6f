"""The explorer: ask a network in a browser, and watch the answer become precise.

`protopfaith serve RUN` opens it; from Python:

>>> from protopfaith.serve import serve
>>> serve(["runs/birds"])  # doctest: +SKIP
"""

from protopfaith.serve.server import serve

__all__ = ["serve"]

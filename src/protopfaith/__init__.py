"""Prototype networks whose explanations are true."""

from protopfaith._version import __version__ as __version__

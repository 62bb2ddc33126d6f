"""Prototype networks whose explanations are true."""

__version__ = "0.1.0"

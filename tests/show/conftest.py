"""The small run and its explanations that the tests of explanations use."""

from tests.explanation.conftest import *  # noqa: F403

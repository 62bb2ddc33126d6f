"""The short runs of other tests: one of 48 x 48 pixels, and a smaller one of 32 x 32."""

from tests.evaluation.conftest import run as small_run  # noqa: F401
from tests.explanation.conftest import _one_thread, run  # noqa: F401

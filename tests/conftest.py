"""Property tests draw new examples at every desk, and in CI always the same ones."""

import os
import tempfile

from hypothesis import settings

os.environ.setdefault(
    "PROTOPFAITH_STATE", tempfile.mkdtemp(prefix="protopfaith-state-")
)  # not the user's own

settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")

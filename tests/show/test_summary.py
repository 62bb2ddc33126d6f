"""The page of `summarize` is tested beside what it shows, in tests/explanation/many/test_summary.py."""

from __future__ import annotations

import numpy as np

from protopfaith.show.summary import _drawn


def test_a_map_shows_where_evidence_is() -> None:
    labels = np.arange(4).reshape(2, 2)
    assert _drawn(np.array([1.0, 0, 0, 0]), labels) != _drawn(np.zeros(4), labels)

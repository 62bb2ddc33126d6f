"""Explanations of very many images: one Parquet data set in parts, on one machine or on many."""

from protopfaith.explanation.bulk.dataset import Bulk, open_bulk
from protopfaith.explanation.bulk.explain import explain_bulk
from protopfaith.explanation.bulk.summary import Summary, summarize

__all__ = ["Bulk", "Summary", "explain_bulk", "open_bulk", "summarize"]

"""Explanations of very many images: one Parquet data set in parts, on one machine or on many."""

from protopfaith.explanation.many.dataset import Bulk, open_bulk
from protopfaith.explanation.many.summary import Summary, summarize
from protopfaith.explanation.many.work import explain_bulk

__all__ = ["Bulk", "Summary", "explain_bulk", "open_bulk", "summarize"]

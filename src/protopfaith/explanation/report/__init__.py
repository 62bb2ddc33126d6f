"""One self-contained page per case: no network, opens from disk, prints well."""

from protopfaith.explanation.report.case import render_report, write_report
from protopfaith.explanation.report.page import render_page

__all__ = ["render_page", "render_report", "write_report"]

from __future__ import annotations

import html
from pathlib import Path

from protopfaith.explanation import Explanation
from protopfaith.show.index import write_index


def test_cases_and_failures_are_listed(explanation: Explanation, tmp_path: Path) -> None:
    case = tmp_path / "a case"
    explanation.save(case / "explanation")
    page = write_index(tmp_path / "index.html", [case], [("b.png", "It is <broken>.")]).read_text()
    assert "1 explained image<" in page
    assert 'href="a%20case/report.html"' in page
    assert html.escape(explanation.title) in page
    assert "It is &lt;broken&gt;." in page
    assert "Not explained" not in write_index(tmp_path / "index.html", [case], []).read_text()

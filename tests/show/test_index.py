from __future__ import annotations

import html
import re
from dataclasses import replace
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


def test_right_and_wrong_can_be_told_apart(explanation: Explanation, tmp_path: Path) -> None:
    label = explanation.prediction
    for name, truth in (("right", label), ("wrong", label - 1), ("unknown", None)):
        replace(explanation, true_class=truth).save(tmp_path / name / "explanation")
    cases = [tmp_path / name for name in ("right", "wrong", "unknown")]
    page = write_index(tmp_path / "index.html", cases, []).read_text()
    assert re.findall('data-verdict="([a-z]*)"', page) == ["right", "wrong", ""]
    assert "right (1)" in page
    assert f"wrong: it is {explanation.class_names[label - 1]}" in html.unescape(page)

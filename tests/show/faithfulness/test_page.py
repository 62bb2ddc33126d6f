from __future__ import annotations

import re

from protopfaith.evaluation.results import Faithfulness
from protopfaith.show.faithfulness.figures import scores_figure
from protopfaith.show.faithfulness.page import write_faithfulness


def test_the_page_has_tables_figures_and_remarks(judgment: Faithfulness) -> None:
    path = write_faithfulness(judgment.page, judgment, {"Scores": scores_figure(judgment)}, "Who is <right>?")
    page = path.read_text(encoding="utf-8")
    assert "<h1>Who is &lt;right&gt;?</h1>" in page
    assert "the 2 prototypes that all explainers have in common" in page
    assert "it is &lt;not&gt; installed" in page
    assert page.count("data:image/png;base64,") == 1
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert 'class="fail"' in page

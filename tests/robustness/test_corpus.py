"""Every bad input is answered in one sentence, every unusual one is taken; nothing breaks, hangs or overwrites."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.robustness import again, arguments, recipes
from tests.robustness.corpus import BAD, GOOD
from tests.robustness.harness import Case, Place, judge

TYPED = [*recipes.TYPED, *arguments.TYPED, *again.GOOD]
RARELY = frozenset(case.name for number, case in enumerate(TYPED) if number % 4)
"""Left to `python -m tests.robustness.corpus`, which runs all of them: one is like another."""
CASES = [case for case in BAD + GOOD if case.name not in RARELY]


def test_the_corpus_is_large() -> None:
    assert len(CASES) >= 300
    assert len({case.name for case in BAD + GOOD}) == len(BAD + GOOD)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name[:80].encode("ascii", "replace").decode())
def test_case(case: Case, template: Path, tmp_path: Path) -> None:
    outcome = judge(case, Place(tmp_path, template))
    assert outcome.kind == "fine", f"{outcome.kind}: {outcome.text}"

"""The page that lists several cases."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from protopfaith.explanation.explanation import Explanation
from protopfaith.explanation.saving import load
from protopfaith.files import reason
from protopfaith.show.heat import scale_of
from protopfaith.show.pages import write_page
from protopfaith.show.pictures import DrawnPicture, Pictures
from protopfaith.show.wording.findings import overall
from protopfaith.show.wording.numbers import percent
from protopfaith.show.wording.verdicts import Verdict, verdicts

logger = logging.getLogger("protopfaith")
VERDICTS = {"right": "right", "wrong": "wrong", "": "true class not known"}


@dataclass(frozen=True)
class CaseCard:
    """A case of the page."""

    link: str
    title: str
    name: str
    predicted: str
    truth: str
    verdict: str  # "right", "wrong", or nothing where the true class is not known
    verdicts: tuple[Verdict, ...]
    original: DrawnPicture
    map: DrawnPicture


def write_index(path: Path, cases: Sequence[Path], failures: Sequence[tuple[str, str]]) -> Path:
    """Links to the reports of `cases` (folders beside `path`), and what failed."""
    pictures = Pictures()
    cards, failures = [], list(failures)
    for case in cases:
        try:
            cards.append(_card(case, load(case / "explanation.json"), pictures))
        except Exception as error:  # one damaged case of an earlier call does not spoil the others
            problem = f"this older case cannot be read and is left out; delete its folder ({reason(error)})"
            failures.append((case.name, problem))
            logger.warning("%s: %s", case.name, problem)
    counts = Counter(card.verdict for card in cards)
    return write_page(
        path,
        "index.html",
        pictures.data(),
        cards=cards,
        failures=failures,
        verdicts={key: f"{word} ({counts[key]})" for key, word in VERDICTS.items() if counts[key]},
        shared=pictures,
    )


def _card(case: Path, found: Explanation, pictures: Pictures) -> CaseCard:
    mine = found.class_map
    truth = None if found.true_class is None else found.class_names[found.true_class]
    predicted = found.class_names[found.prediction]
    return CaseCard(
        quote(f"{case.name}/report.html"),
        found.title,
        found.name,
        overall(found.findings)
        if found.findings
        else f"{predicted}, {percent(float(found.probabilities[found.prediction]))}",
        truth or "",
        "" if truth is None else "right" if truth == predicted else "wrong",
        verdicts(found),
        pictures.plain(found.original, f"The image {found.name}"),
        pictures.ours(found.original, mine, scale_of([mine]), f"{found.title} A map"),
    )

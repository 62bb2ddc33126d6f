from __future__ import annotations

import shlex
from dataclasses import replace

from protopfaith.explanation import Explanation
from protopfaith.show.wording.commands import sharper


def test_the_command_asks_for_as_much_more_as_the_error_needs(explanation: Explanation) -> None:
    rough = replace(explanation, evaluations=1000, name="a bird.png", path="birds/a bird.png")
    words = shlex.split(sharper(rough, 0.6))
    assert words[:4] == ["protopfaith", "explain", "RUN", "birds/a bird.png"]
    assert (
        int(words[words.index("--budget") + 1]) >= 16_000
    )  # four times the precision, sixteen times the work


def test_the_command_keeps_what_was_asked(explanation: Explanation) -> None:
    asked = replace(explanation, versus=1, settings={**explanation.settings, "seed": 7})
    words = shlex.split(sharper(asked, 0.6))
    assert words[words.index("--versus") + 1] == explanation.class_names[1]
    assert words[words.index("--seed") + 1] == "7"

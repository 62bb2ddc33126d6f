from __future__ import annotations

import math
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


def test_a_map_without_a_known_error_has_a_command_too(explanation: Explanation) -> None:
    for error in (math.inf, math.nan, 1e30):
        words = shlex.split(sharper(replace(explanation, evaluations=1000), error))
        assert int(words[words.index("--budget") + 1]) == 2**20


def test_the_command_keeps_what_was_asked(explanation: Explanation) -> None:
    asked = replace(explanation, versus=1, settings={**explanation.settings, "seed": 7})
    words = shlex.split(sharper(asked, 0.6))
    assert words[words.index("--versus") + 1] == explanation.class_names[1]
    assert words[words.index("--seed") + 1] == "7"


def test_the_command_repeats_estimator_mask_and_what_was_left_out(explanation: Explanation) -> None:
    given = {"estimator": "owen", "options": {"levels": 8, "paired": True}, "mask": "a mask.png"}
    asked = replace(explanation, settings={**explanation.settings, **given, "sources": False})
    words = shlex.split(sharper(asked, 0.6))
    assert words[words.index("--estimator") + 1] == "owen"
    assert words[words.index("--mask") + 1] == "a mask.png"
    assert [words[i + 1] for i, word in enumerate(words) if word == "--option"] == ["levels=8", "paired=True"]
    assert "--no-sources" in words
    quick = replace(asked, settings={**asked.settings, "source_parts": True})
    assert "--quick" in sharper(quick, 0.6)
    new = ("sources", "source_parts", "estimator", "mask")
    old = {name: value for name, value in explanation.settings.items() if name not in new}
    plain = sharper(replace(explanation, settings=old), 0.6)  # of an earlier version
    assert not any(option in plain for option in ("--no-sources", "--quick", "--estimator", "--mask"))

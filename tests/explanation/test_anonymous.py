from __future__ import annotations

from dataclasses import replace

import torch

from protopfaith.explanation import Explanation
from protopfaith.explanation.anonymous import HIDDEN, without_source_names
from protopfaith.show.report import render_report


def test_no_name_of_a_file_is_left(explanation: Explanation) -> None:
    named = replace(explanation, path="jane.png", settings={**explanation.settings, "mask": "jane-mask.png"})
    sources = {one.source.image for one in named.evidence if one.source is not None}
    assert sources
    page = render_report(without_source_names(named))
    assert not any(name in page for name in {*sources, "jane.png", "jane-mask.png"})
    assert HIDDEN in page


def test_all_numbers_stay(explanation: Explanation) -> None:
    hidden = without_source_names(explanation)
    assert torch.equal(hidden.class_map.values, explanation.class_map.values)
    for ours, theirs in zip(hidden.evidence, explanation.evidence, strict=True):
        assert torch.equal(ours.test.values, theirs.test.values)
        assert (ours.source is None) == (theirs.source is None)
        if ours.source is not None and theirs.source is not None:
            assert replace(ours.source, image=theirs.source.image) == theirs.source

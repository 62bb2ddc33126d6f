from __future__ import annotations

import pytest
import torch

from protopfaith.explanation import Explanation
from protopfaith.show.wording.places import place_for, place_of


@pytest.mark.parametrize(
    ("point", "words"),
    [
        ((0.1, 0.1), "the upper left of this image"),
        ((0.5, 0.5), "the center of this image"),
        ((0.36, 0.37), "the upper left of this image"),
        ((0.5, 0.9), "the right of this image"),
        ((0.99, 0.5), "the lower middle of this image"),
    ],
)
def test_a_place_has_a_name(point: tuple[float, float], words: str) -> None:
    assert place_of(torch.tensor([point, (0.0, 0.0)]), torch.tensor([1.0, 0.0])) == words


def test_scattered_evidence_has_no_place() -> None:
    corners = torch.tensor([(0.1, 0.1), (0.9, 0.9), (0.1, 0.9), (0.9, 0.1)])
    assert "in many places" in place_of(corners, torch.ones(4))


def test_nothing_decided_is_nowhere(explanation: Explanation) -> None:
    from dataclasses import replace

    mine = explanation.class_map
    vague = replace(mine, standard_errors=torch.full_like(mine.values, 1e9), sure=None)
    assert place_for(vague) is None

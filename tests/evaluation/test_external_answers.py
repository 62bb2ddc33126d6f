"""What a network says to images from elsewhere, and to which of them it says nothing."""

from __future__ import annotations

import pytest
import torch

from protopfaith.data.external import External, Sample
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.external_answers import ask_about, match_classes
from protopfaith.network import ProtoPNet
from tests.evaluation.conftest import PREPROCESSING, pictures

IMAGES = pictures("elsewhere", 6)


def unreadable(index: int) -> torch.Tensor:
    raise ProtoPFaithError(f"{index}.png is broken.")


def test_what_can_be_read_is_judged_in_order(model: ProtoPNet) -> None:
    samples = tuple(Sample(f"{index}.png", "red", f"p{index // 2}") for index in range(6))
    external = External(
        "clinic", samples, lambda index: unreadable(2) if index == 2 else IMAGES.image(index), IMAGES.sha256
    )
    answers = ask_about(external, range(1, 6), model, PREPROCESSING, seen={IMAGES.sha256(5)}, batch_size=2)
    assert (answers.asked, answers.judged) == ([1, 2, 3, 4], [1, 3, 4])
    assert answers.errors == {2: "2.png is broken."}
    assert answers.groups == ["p0", "p1", "p2"]
    with torch.no_grad():
        expected = model(PREPROCESSING.normalize(torch.stack([IMAGES.image(index) for index in (1, 3, 4)])))
    torch.testing.assert_close(answers.logits, expected)
    with pytest.raises(ProtoPFaithError, match=r"No image of clinic could be judged\. 2\.png is broken"):
        ask_about(external, [2], model, PREPROCESSING, seen=(), batch_size=2)


def test_classes_match_by_name_then_loosely() -> None:
    assert match_classes(["a b", "A_B", "A-B", "c"], ["A B", "a b", "C"])[0] == [1, None, None, 2]

"""What logits mean."""

from __future__ import annotations

import pytest
import torch

from protopfaith.network import ProtoPNet, XProtoNet, outcome_of, probabilities


def test_networks_say_what_they_decide() -> None:
    assert outcome_of(ProtoPNet("small", 2, 1, 4)) == "one"
    assert outcome_of(XProtoNet("small", 2, 2, 4)) == "several"
    assert outcome_of(object()) == "one"


@pytest.mark.parametrize("shape", [(3,), (4, 3)])
def test_classes_share_one_probability_and_findings_have_their_own(shape: tuple[int, ...]) -> None:
    logits = torch.randn(shape)
    assert torch.allclose(probabilities(logits).sum(-1), torch.ones(shape[:-1]))
    alone = torch.stack([probabilities(torch.stack([x, x.new_zeros(())]))[0] for x in logits.flatten()])
    assert torch.allclose(probabilities(logits, "several").flatten(), alone)

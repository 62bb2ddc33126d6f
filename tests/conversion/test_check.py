"""The check of a conversion sees what differs, and is not misled by rounding."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from protopfaith.conversion import ForeignNetwork
from protopfaith.conversion.check import check_conversion
from protopfaith.conversion.foreign import build
from protopfaith.errors import ProtoPFaithError


def test_what_was_built_says_the_same(network: ForeignNetwork) -> None:
    check = check_conversion(network, build(network, ["a", "b"]), torch.rand(3, 48, 48))
    assert max(check.distances, check.logits) < 1e-5


def test_prototypes_on_the_very_image_do_not_mislead_it(network: ForeignNetwork) -> None:
    image = torch.rand(3, 48, 48)
    with torch.no_grad():
        z = build(network, ["a", "b"]).latent(image[None])[0].flatten(1).T
    pushed = replace(network, prototypes=z[:4].clone())
    check = check_conversion(pushed, build(pushed, ["a", "b"]), image)
    assert max(check.distances, check.logits) < 1e-5


@pytest.mark.parametrize("part", ["prototypes", "weights", "epsilon", "layers"])
def test_a_difference_is_seen(part: str, network: ForeignNetwork) -> None:
    model = build(network, ["a", "b"])
    changes = {
        "prototypes": network.prototypes.flip(0),
        "weights": network.weights.flip(1),
        "epsilon": 1e-2,
        "layers": [8, "sigmoid", 8, "sigmoid"],
    }
    with pytest.raises(ProtoPFaithError, match="does not say what the file says"):
        check_conversion(replace(network, **{part: changes[part]}), model, torch.rand(3, 48, 48))

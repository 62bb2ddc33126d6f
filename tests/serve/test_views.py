"""What pages show of a case."""

from __future__ import annotations

import torch

from protopfaith.data import load_data
from protopfaith.explanation import Explainer
from protopfaith.network import ProtoTree
from protopfaith.serve.bounds import Bounds
from protopfaith.serve.case import Case
from protopfaith.serve.networks import Network
from protopfaith.serve.question import Question
from protopfaith.serve.views import blocks_of


def test_a_tree_shows_the_way_of_the_image() -> None:
    torch.manual_seed(0)
    data = load_data("birds", size=32, train=16, validation=8, test=8)
    model = ProtoTree("small", list(data.classes), depth=2, prototype_channels=8).eval()
    network = Network(0, Explainer(model, preprocessing=data.preprocessing, images=data), "tree")
    pixels, known = network.test_image(0)
    case = Case(network, network.explainer.open(pixels), Question(), "me", bounds=Bounds(), known=known)
    case.decide()
    assert "tree" not in blocks_of(case)
    case.play()
    blocks = blocks_of(case)
    assert case.decision is not None
    assert case.decision.route is not None
    for turn in case.decision.route.turns:
        assert f"Something like prototype {turn.prototype}?" in blocks["tree"]
    assert f"Leaf {case.decision.route.leaf}," in blocks["tree"]
    assert blocks["findings"] == ""

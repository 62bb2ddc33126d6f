from __future__ import annotations

import torch

from protopfaith.explanation import Explainer
from protopfaith.explanation.decision import decide
from protopfaith.explanation.familiarity import familiarity


def test_distances_are_those_of_the_predicted_class(explainer: Explainer, pixels: torch.Tensor) -> None:
    decision = decide(explainer.model, explainer.open(pixels))
    near = familiarity(explainer.model, decision, explainer.reference)
    first = int(decision.logits.argmax())
    owners = explainer.model.prototype_classes.tolist()
    own = [d for d, owner in zip(decision.distances.tolist(), owners, strict=True) if owner == first]
    assert near.nearest == min(own)
    assert explainer.reference is not None
    assert near.usual == float(explainer.reference.usual_distances[first])
    assert familiarity(explainer.model, decision, None).usual is None

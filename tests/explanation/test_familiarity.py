from __future__ import annotations

from dataclasses import replace

import torch

from protopfaith.explanation import Explainer
from protopfaith.explanation.decision import decide
from protopfaith.explanation.familiarity import familiarity, is_unfamiliar
from protopfaith.training.typical import traits


def test_an_image_is_compared_with_its_predicted_class(explainer: Explainer, pixels: torch.Tensor) -> None:
    decision = decide(explainer.model, explainer.open(pixels), target=0)
    first, reference = decision.logits.argmax()[None], explainer.reference
    assert reference is not None
    assert reference.typical is not None
    with torch.no_grad():
        image = decision.picture.input[None]
        maps = explainer.model.distance_maps(image)
    expected = reference.typical.distances(traits(explainer.model, image, maps, first), first)
    near = familiarity(explainer.model, decision, reference)
    assert near == (float(expected[0]), reference.typical.usual)
    assert is_unfamiliar(*near) is False
    assert is_unfamiliar(*near._replace(nearest=near.usual + 1)) is True


def test_runs_of_earlier_versions_know_the_nearest_prototype_alone(
    explainer: Explainer, pixels: torch.Tensor
) -> None:
    decision = decide(explainer.model, explainer.open(pixels))
    assert explainer.reference is not None
    old = replace(explainer.reference, typical=None)
    first = int(decision.logits.argmax())
    owners = explainer.model.prototype_classes.tolist()
    own = [d for d, owner in zip(decision.distances.tolist(), owners, strict=True) if owner == first]
    assert familiarity(explainer.model, decision, old) == (min(own), float(old.usual_distances[first]))
    assert familiarity(explainer.model, decision, None).usual is None

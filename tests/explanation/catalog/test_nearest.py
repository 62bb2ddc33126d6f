from __future__ import annotations

import pytest
import torch

from protopfaith.explanation import Explainer
from protopfaith.explanation.catalog.nearest import Patch, patch_box, survey


def test_nearest_patches_and_uses_are_those_of_the_slow_way(explainer: Explainer) -> None:
    model, preprocessing = explainer.model, explainer.preprocessing
    images = explainer.images.sets[0].subset(range(20))  # type: ignore[union-attr]
    found = survey(model, images, preprocessing, nearest=2, batch_size=7)  # type: ignore[arg-type]
    uses = [0] * len(model.prototypes)
    with torch.no_grad():
        maps = model.distance_maps(preprocessing.normalize(images.uint8()))  # type: ignore[union-attr]
    for image in range(20):
        s = maps[image].amin((1, 2))
        predicted = int(model.logits(s[None]).argmax())
        candidates = [
            p
            for p in range(len(s))
            if int(model.prototype_classes[p]) == predicted
            and model.sources[p].sha256 != images.sha256(image)  # type: ignore[union-attr]
        ]
        if candidates:
            score = {p: float(-model.classifier.weight.detach()[predicted, p] * s[p]) for p in candidates}
            uses[max(score, key=score.__getitem__)] += 1
    assert found.uses.tolist() == uses
    for prototype, patches in enumerate(found.nearest):
        s = maps[:, prototype].amin((1, 2))
        order = s.argsort(stable=True)[:2].tolist()
        assert [patch.image for patch in patches] == order
        for patch in patches:
            expected = maps[patch.image, prototype]
            assert patch.distance == pytest.approx(float(expected[patch.row, patch.column]), abs=1e-5)
            assert patch.distance == pytest.approx(float(expected.min()), abs=1e-5)


@pytest.mark.parametrize(("latent", "size"), [((3, 4), (24, 24)), ((7, 7), (100, 60)), ((1, 1), (5, 9))])
def test_boxes_of_all_positions_tile_the_image(latent: tuple[int, int], size: tuple[int, int]) -> None:
    covered = torch.zeros(size)
    for row in range(latent[0]):
        for column in range(latent[1]):
            left, top, right, bottom = patch_box(Patch(0, "", 0, row, column, 0.0), latent, size)
            covered[top:bottom, left:right] += 1
    assert torch.equal(covered, torch.ones(size))

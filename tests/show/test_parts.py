from __future__ import annotations

import numpy as np
import torch

from protopfaith.data import ImageSet, Record
from protopfaith.evaluation.parts_results import PartScores, PartsEvaluation
from protopfaith.show.parts import parts_figure


def test_every_prototype_has_a_box_in_every_image() -> None:
    records = [Record(f"{i}.png", i % 2, str(i), points={"beak": (3.0, 4.0)}) for i in range(6)]
    images = ImageSet(np.zeros((6, 3, 20, 20), np.uint8), records, ("cat_$", "dog_$"))
    places = {"ours": [torch.full((3, 2), 9.0, dtype=torch.float64) for _ in range(6)]}
    scores = (PartScores("ours", 1.0, 1.0, 1.0, ()),)
    settings = {"box": 0.3}
    found = PartsEvaluation(scores, 2, 6, ("beak",), settings, places, (0, 2, 4, 1, 3, 5))
    figure = parts_figure(found, images)
    figure.canvas.draw()
    assert [len(axes.patches) for axes in figure.axes] == [3] * 6
    assert figure.axes[0].get_title(loc="left") == "cat_$: ours"

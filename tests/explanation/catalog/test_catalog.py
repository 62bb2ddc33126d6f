from __future__ import annotations

import copy
import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Catalog, Explainer, explain_prototypes


@pytest.fixture(scope="module")
def catalog(explainer: Explainer) -> Catalog:
    return explain_prototypes(explainer, players=24, budget=96, nearest=3)


def test_every_prototype_is_there(explainer: Explainer, catalog: Catalog) -> None:
    assert [one.prototype for one in catalog.prototypes] == list(range(len(explainer.model.prototypes)))
    for one in catalog.prototypes:
        assert one.nearest[0].path == one.source.image  # its source is the nearest image, at distance zero
        assert one.nearest[0].distance == pytest.approx(0, abs=1e-4)
        assert (one.nearest[0].row, one.nearest[0].column) == (one.source.row, one.source.column)
        assert 0 <= one.object_share <= 1
        assert 0 < one.object_area < 0.6


@pytest.mark.parametrize(
    ("estimator", "options"), [("moment_path", {"nodes": 2}), ("dasp", {"sizes": 2}), ("exact", {})]
)
def test_an_unknown_precision_is_written_as_none(
    explainer: Explainer, estimator: str, options: dict[str, int]
) -> None:
    """What moment_path calls its precision is the gap of its rule, not the error of its values."""
    catalog = explain_prototypes(explainer, players=24, estimator=estimator, options=options, nearest=1)
    written = [one["precision"] for one in catalog.to_dict()["prototypes"]]
    assert written == [0.0 if estimator == "exact" else None] * len(catalog.prototypes)


def test_duplicates_and_unused_prototypes_are_named(explainer: Explainer) -> None:
    model = copy.deepcopy(explainer.model)
    with torch.no_grad():
        model.prototypes[1] = model.prototypes[0]
        model.prototypes[2] = 50.0  # far from everything
    model.sources[1] = model.sources[0]
    images = explainer.images.sets  # type: ignore[union-attr]
    found = explain_prototypes(
        model, preprocessing=explainer.preprocessing, images=images, players=24, budget=96, nearest=1
    )
    assert found.duplicates == [1]
    assert found.prototypes[1].duplicate_kind == "identical"
    assert 2 in found.unused
    assert found.classes[0].distinct == 1


def test_files_hold_everything(catalog: Catalog, tmp_path: Path) -> None:
    path = catalog.save(tmp_path)
    assert path.name == "prototypes.html"
    content = json.loads((tmp_path / "prototypes.json").read_text())
    assert len(content["prototypes"]) == len(catalog.prototypes)
    with np.load(tmp_path / "prototypes.npz", allow_pickle=False) as arrays:
        assert np.array_equal(arrays["3.values"], catalog.prototypes[3].source_side.regions.values.numpy())
    page = path.read_text()
    for name in ("http://", "https://"):
        assert name not in page
    for portrait in catalog.classes:
        assert portrait.name in page


def test_a_class_rests_on_background_when_little_evidence_is_on_the_object(catalog: Catalog) -> None:
    for one in catalog.classes:
        members = [p.object_share for p in catalog.prototypes if p.class_name == one.name]
        assert one.object_share == pytest.approx(sum(members) / len(members))
        assert one.rests_on_background == (one.object_share < 0.5)
    assert not any(math.isnan(one.object_share) for one in catalog.classes)


def test_a_network_alone_is_not_enough(explainer: Explainer) -> None:
    with pytest.raises(ProtoPFaithError, match="training images are not known"):
        explain_prototypes(explainer.model)

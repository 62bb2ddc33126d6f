"""Birds with several findings."""

from __future__ import annotations

import pytest
import torch

from protopfaith.data import load_data
from protopfaith.data.birds import FINDINGS, PARTS, SHARED, finding_part
from protopfaith.data.birds.attributes import draw_attributes
from protopfaith.errors import ProtoPFaithError

COUNTS = {"train": 64, "validation": 32, "test": 32}


def load(**options):
    return load_data("birds_multilabel", size=32, **{**COUNTS, **options})


def test_every_finding_is_shown_by_a_part_of_its_own() -> None:
    parts = [finding_part(name) for name in FINDINGS]
    assert len(set(parts)) == len(parts)
    for name, (part, variant) in FINDINGS.items():
        assert finding_part(name) in PARTS
        assert variant not in SHARED[part]
    with pytest.raises(ProtoPFaithError, match="no finding"):
        finding_part("no such thing")


def test_findings_occur_together_and_alone() -> None:
    labels = load(missing=0.0).train.labels
    counts = labels.sum(1)
    assert int(counts.min()) <= 1
    assert int(counts.max()) >= 3
    assert bool(((labels.mean(0) > 0.1) & (labels.mean(0) < 0.6)).all())


def test_only_training_labels_are_missing() -> None:
    data = load(missing=0.3)
    assert 0.15 < float(data.train.labels.isnan().float().mean()) < 0.45
    assert not bool(data.validation.labels.isnan().any() | data.test.labels.isnan().any())
    whole = load(missing=0.0).train.labels
    known = ~data.train.labels.isnan()
    assert torch.equal(data.train.labels[known], whole[known])


def test_both_pictures_of_a_bird_have_its_findings_and_its_group() -> None:
    images = load(missing=0.0).train
    for first in range(0, len(images), 2):
        assert images.records[first].group == images.records[first + 1].group
        assert images.records[first].findings == images.records[first + 1].findings
        assert not torch.equal(images.image(first), images.image(first + 1))
    data = load(fold=1)
    groups = [{record.group for record in s.records} for s in data.sets().values()]
    assert not groups[0] & groups[1]


def test_a_seed_draws_the_same_birds() -> None:
    first, again = (draw_attributes({"train": 4, "validation": 0, "test": 0}, seed=3, size=24) for _ in "ab")
    for one, other in zip(first, again, strict=True):
        assert (one == other).all()


@pytest.mark.parametrize(
    "options", [{"train": 8}, {"test": 3}, {"missing": 1.5}, {"missing": float("nan")}, {"train": 10**7}]
)
def test_bad_options_are_refused(options: dict) -> None:
    with pytest.raises(ProtoPFaithError):
        load(**options)

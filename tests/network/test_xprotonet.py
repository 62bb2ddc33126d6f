"""XProtoNet, compared with its definition."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cosine_similarity

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import XProtoNet, load, occurrence_pooling, prune, save


@pytest.fixture
def model() -> XProtoNet:
    torch.manual_seed(0)
    return XProtoNet("small", ["edema", "mass", "effusion"], 4, 8).eval()


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 5), st.integers(1, 4))
@settings(deadline=None, max_examples=20)
def test_pooling_is_a_weighted_sum(batch: int, prototypes: int, channels: int, side: int) -> None:
    latent = torch.randn(batch, channels, side, side + 1)
    occurrence = torch.rand(batch, prototypes, side, side + 1) + 0.01
    found = occurrence_pooling(latent, occurrence)
    for b in range(batch):
        for j in range(prototypes):
            total = torch.zeros(channels)
            for row in range(side):
                for column in range(side + 1):
                    total += occurrence[b, j, row, column] * latent[b, :, row, column]
            assert torch.allclose(found[b, j], total / total.norm(), atol=1e-4)


def test_distances_are_two_minus_two_cosines(model: XProtoNet) -> None:
    x = torch.rand(2, 3, 48, 48)
    with torch.no_grad():
        cosines = cosine_similarity(model.seen(x), model.prototypes[None], dim=2)
        assert torch.allclose(model.distances(x), 2 - 2 * cosines, atol=1e-5)


def test_a_finding_reads_its_own_prototypes_alone(model: XProtoNet) -> None:
    weights = model.readout()
    own = model.prototype_classes == torch.arange(3)[:, None]
    assert bool((weights[~own] == 0).all())
    assert bool((weights[own].reshape(3, 4) * model.prototype_signs.reshape(3, 4) > 0).all())
    assert torch.allclose(weights.sum(1), torch.zeros(3), atol=1e-6)  # as much for it as against it


def test_settling_keeps_signs_whatever_a_step_did(model: XProtoNet) -> None:
    with torch.no_grad():
        model.classifier.weight.copy_(torch.randn_like(model.classifier.weight))
        model.prototypes.mul_(3)
    model.settle_prototypes()
    assert bool((model.readout() * model.prototype_signs >= 0).all())
    assert torch.allclose(model.prototypes.norm(dim=1), torch.ones(12), atol=1e-6)


def test_what_speaks_for_other_findings_changes_nothing(model: XProtoNet) -> None:
    distances = torch.rand(1, 12)
    other = distances.clone()
    other[:, 4:] = torch.rand(1, 8)
    assert torch.equal(model.logits(distances)[:, 0], model.logits(other)[:, 0])


def test_occurrence_maps_are_not_negative_and_scaling_them_changes_nothing() -> None:
    model = XProtoNet("small", 1, 2, 8).eval()
    x = torch.rand(2, 3, 48, 48)
    with torch.no_grad():
        occurrence, latent = model.occurrence_maps(x), model.latent(x)
        assert bool(((occurrence >= 0) & (occurrence <= 1)).all())
        assert torch.allclose(
            occurrence_pooling(latent, occurrence), occurrence_pooling(latent, occurrence / 1000), atol=1e-5
        )


def test_one_finding_is_enough_and_none_is_not() -> None:
    assert XProtoNet("small", ["pneumonia"], 2, 4)(torch.zeros(1, 3, 32, 32)).shape == (1, 1)
    with pytest.raises(ProtoPFaithError):
        XProtoNet("small", [], 2, 4)


@pytest.mark.parametrize("wrong", [{"activation": "relu1"}, {"similarity": "log"}])
def test_what_it_cannot_be_is_refused(wrong: dict) -> None:
    with pytest.raises(ProtoPFaithError, match="leave them out"):
        XProtoNet("small", ["edema"], 2, 4, **wrong)


def test_pruned_and_saved_it_is_the_same(model: XProtoNet, tmp_path: Path) -> None:
    keep = [0, 2, 3, 5, 6, 8, 11]
    smaller = prune(model, keep)
    save(smaller, tmp_path / "model.safetensors")
    again, _ = load(tmp_path / "model.safetensors")
    assert isinstance(again, XProtoNet)
    x = torch.rand(2, 3, 48, 48)
    with torch.no_grad():
        assert torch.allclose(again.distances(x), model.distances(x)[:, keep], atol=1e-6)
        assert torch.equal(again(x), smaller(x))
    assert torch.equal(again.prototype_signs, model.prototype_signs[keep])


def test_a_stranger_family_is_refused(model: XProtoNet, tmp_path: Path) -> None:
    from protopfaith.network.checkpoint import HEADER
    from protopfaith.tensorfile import read_tensors, write_tensors

    save(model, tmp_path / "model.safetensors")
    header, tensors = read_tensors(tmp_path / "model.safetensors", HEADER)
    header["architecture"]["family"] = "os.system"
    write_tensors(tmp_path / "other.safetensors", HEADER, header, tensors)
    with pytest.raises(ProtoPFaithError, match="family"):
        load(tmp_path / "other.safetensors")

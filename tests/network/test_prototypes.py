from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from protopfaith.errors import ProtoPFaithError
from protopfaith.network import (
    ProtoPNet,
    PrototypeSource,
    distinct_prototypes,
    duplicate_groups,
    equality_tolerance,
    prototype_spread,
    prune,
)


@pytest.fixture
def model():
    model = ProtoPNet("small", ["cat", "dog"], 3, 4).eval()
    with torch.no_grad():
        model.prototypes[2] = model.prototypes[0]  # within cat
        model.prototypes[4] = model.prototypes[0]  # in dog: another class, no duplicate
        model.prototypes[5] = model.prototypes[3] + 1e-3
    model.sources = [PrototypeSource(f"{index}.png", 0, index, "") for index in range(6)]
    return model


def test_identical_vectors_of_a_class(model):
    result = distinct_prototypes(model, 0)
    assert result.groups == ((0, 2), (1,), (3,), (4,), (5,))
    assert result.per_class == (2, 3)
    assert (result.distinct, result.total) == (5, 6)
    assert result.fraction == pytest.approx(5 / 6)
    assert result.duplicates == (2,)


def test_spread_within_and_between_classes():
    model = ProtoPNet("small", 3, 5, 4)
    p, pairs = model.prototypes.detach(), {True: [], False: []}
    for i in range(15):
        for j in range(i):
            pairs[i // 5 == j // 5].append(float(((p[i] - p[j]) ** 2).sum()))
    expected = [sorted(pairs[same])[(len(pairs[same]) - 1) // 2] for same in (True, False)]  # torch's median
    assert prototype_spread(model) == pytest.approx(expected, rel=1e-5)
    single, _ = prototype_spread(ProtoPNet("small", 2, 1, 4))
    assert math.isnan(single)  # no pair within a class


def test_tolerance_is_a_squared_distance(model):
    assert distinct_prototypes(model, 4.1e-6).per_class == (2, 2)
    assert distinct_prototypes(model, 3.9e-6).per_class == (2, 3)


def test_what_differs_by_rounding_is_equal_by_default(model):
    with torch.no_grad():
        model.prototypes[2] += 1e-4
        model.prototypes[5] += 1e-2
    assert distinct_prototypes(model).per_class == (2, 3)
    assert distinct_prototypes(model, 0).per_class == (3, 3)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=12))
def test_groups_are_the_equal_pairs(pairs):
    classes, values = torch.tensor(pairs).t()
    groups = duplicate_groups(values[:, None].float(), classes)
    assert sorted(index for group in groups for index in group) == list(range(len(pairs)))
    together = {(a, b) for group in groups for a in group for b in group}
    assert together == {(a, b) for a in range(len(pairs)) for b in range(len(pairs)) if pairs[a] == pairs[b]}


@pytest.mark.parametrize("keep", [[3, 0, 1], torch.tensor([True, True, False, True, False, False])])
def test_pruning_drops_columns(model, keep):
    pruned = prune(model, keep)
    x = torch.rand(2, 3, 32, 32)
    left = [0, 1, 3]
    assert torch.equal(pruned.prototypes, model.prototypes[left])
    assert pruned.prototypes.requires_grad
    assert pruned.prototype_classes.tolist() == [0, 0, 1]
    assert [source.column for source in pruned.sources] == left
    torch.testing.assert_close(pruned.distances(x), model.distances(x)[:, left])
    torch.testing.assert_close(pruned(x), -model.distances(x)[:, left] @ model.classifier.weight[:, left].t())
    assert model.prototypes.shape == (6, 4)
    assert pruned.config["prototypes_per_class"] == [2, 1]


class AsOnAGpu(TorchDispatchMode):
    """Refuses to select by indices from another device; the device "meta" itself lets them pass."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.index_select.default:
            assert args[0].device == args[2].device
        return func(*args, **(kwargs or {}))


def test_pruning_selects_on_the_network_s_device(model):
    for module in (model.encoder, model.features, model.classifier):
        module.to("meta")
    model.prototypes = torch.nn.Parameter(model.prototypes.to("meta"))
    with AsOnAGpu():
        pruned = prune(model, [0, 1, 3])
    assert pruned.prototypes.device.type == pruned.classifier.weight.device.type == "meta"
    assert pruned.prototypes.shape == (3, 4)
    assert pruned.classifier.weight.shape == (2, 3)


def test_pruning_duplicates_with_their_weights_added_changes_no_logit(model):
    result = distinct_prototypes(model, 0)
    pruned = prune(model, [group[0] for group in result.groups])
    with torch.no_grad():
        weight = model.classifier.weight
        pruned.classifier.weight.copy_(torch.stack([weight[:, list(g)].sum(1) for g in result.groups], 1))
    x = torch.rand(2, 3, 32, 32)
    torch.testing.assert_close(pruned(x), model(x))


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ([0, 1], "no prototype for dog"),
        ([], "no prototype for cat, dog"),
        ([0, 6], "indices from 0 to 5, but got"),
        ([-1], "indices from 0 to 5, but got"),
        (torch.tensor([True]), "6 booleans or indices from 0 to 5, but got 1 booleans"),
    ],
)
def test_bad_choices(model, keep, message):
    with pytest.raises(ProtoPFaithError, match=message):
        prune(model, keep)


def test_on_the_unit_sphere_the_tolerance_does_not_grow():
    assert equality_tolerance(4096, "unit") == equality_tolerance(8, "unit") < equality_tolerance(128)
    model = ProtoPNet("small", 2, 2, 64, activation="unit")
    with torch.no_grad():
        model.prototypes[1] = model.prototypes[0] + 1e-4  # 6.4e-7 away, less than rounding leaves
        model.prototypes[3] = model.prototypes[2]
        model.prototypes[3, 0] += 4e-3
    assert distinct_prototypes(model).groups == ((0, 1), (2,), (3,))


@pytest.mark.parametrize(
    ("asked", "words"), [((-5,), "at least 1, not -5"), ((5, "x"), "no activation named 'x'")]
)
def test_a_tolerance_is_one_of_a_network_that_there_may_be(asked, words):
    with pytest.raises(ProtoPFaithError, match=words):
        equality_tolerance(*asked)

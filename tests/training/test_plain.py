"""The plain classifier starts from a probe and moves only as far as that helps."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from protopfaith.network import output_channels
from protopfaith.training.images import TrainingImages
from protopfaith.training.launch import build_model, make_fabric
from protopfaith.training.plain import Moved, PlainClassifier
from protopfaith.training.probe import SHARES, LinearProbe


@pytest.fixture
def plain(recipe, data) -> PlainClassifier:
    model = build_model(recipe, data)
    head = nn.Linear(output_channels(model.encoder, model.in_channels), len(data.classes))
    return PlainClassifier(model, head, TrainingImages(make_fabric(recipe.compute), recipe, data))


def moved(plain: PlainClassifier) -> dict[str, torch.Tensor]:
    """Its state of before, after every weight was changed."""
    start = plain.state()
    with torch.no_grad():
        for parameter in [*plain.model.encoder.parameters(), *plain.head.parameters()]:
            parameter.add_(torch.randn_like(parameter))
    return start


def test_a_state_is_a_copy(plain) -> None:
    start = moved(plain)
    assert not torch.equal(start["head.weight"], plain.head.weight)


def test_it_starts_smaller_than_the_probe_and_keeps_the_probe(plain) -> None:
    probe = LinearProbe(torch.randn_like(plain.head.weight), torch.randn_like(plain.head.bias), 0.1, 0.9)
    kept = plain.start_from(probe)
    torch.testing.assert_close(kept["head.weight"], probe.weight)
    torch.testing.assert_close(plain.head.weight.argmax(0), probe.weight.argmax(0))
    assert plain.head.weight.norm() < probe.weight.norm()


@pytest.mark.parametrize("best", SHARES)
def test_the_best_share_is_kept(plain, best) -> None:
    accuracies = dict.fromkeys(SHARES, 0.5) | {best: 0.75}
    told = iter(accuracies.values())
    found = plain.move_as_far_as_it_helps(moved(plain), lambda: next(told))
    assert found == Moved(best, accuracies)
    assert f"kept at {best:g} of the way" in found.sentences()[0]


def test_where_training_only_harms_it_stays_as_it_came(plain) -> None:
    start = moved(plain)
    told = iter([0.75, *[0.5] * (len(SHARES) - 1)])
    plain.move_as_far_as_it_helps(start, lambda: next(told))
    kept = plain.state()
    encoder = [name for name in start if name.startswith("encoder.")]
    assert any("running_" in name for name in encoder)  # those that the probe was fitted to
    for name in encoder:
        torch.testing.assert_close(kept[name], start[name])


def test_of_equally_good_ones_it_is_the_furthest(plain) -> None:
    assert plain.move_as_far_as_it_helps(moved(plain), lambda: 0.5).share == 1.0


def test_without_validation_images_it_stays_as_trained(plain) -> None:
    start = moved(plain)
    end = plain.state()
    found = plain.move_as_far_as_it_helps(start, lambda: None)
    assert (found.share, found.sentences()) == (1.0, [])
    assert all(torch.equal(tensor, end[name]) for name, tensor in plain.state().items())

from __future__ import annotations

import pytest
import torch

from protopfaith.data import load_data
from protopfaith.network import ProtoPNet
from protopfaith.training.hidden import hidden_accuracies, seen_in_training, told
from protopfaith.training.metrics import set_balanced_accuracy
from protopfaith.training.recipe import load_recipe


@pytest.fixture(scope="module")
def data():
    return load_data("birds", size=32, train=8, validation=8, test=24)


@pytest.fixture(scope="module")
def model(data):
    torch.manual_seed(0)
    return ProtoPNet("small", list(data.classes), 1, 4).eval()


def test_nothing_hidden_is_the_plain_accuracy(data, model) -> None:
    found = hidden_accuracies(model, data.test, data.preprocessing, shares=(0.0,), batch_size=7)
    assert found == {0.0: set_balanced_accuracy(model, data.test, data.preprocessing)}


def test_everything_hidden_is_chance(data, model) -> None:
    """All images are the same then, so one class is recognized."""
    found = hidden_accuracies(model, data.test, data.preprocessing, shares=(1.0,))
    assert found[1.0] == pytest.approx(1 / len(data.classes))


def test_the_same_windows_each_time(data, model) -> None:
    once, again = (hidden_accuracies(model, data.test, data.preprocessing, most=10) for _ in range(2))
    assert once == again
    assert told(once).startswith("Balanced accuracy with 0 / 25 / 50 / 75% of the image hidden: ")


@pytest.mark.parametrize(
    ("changes", "seen"),
    [
        ([], False),
        (["share=0.5"], True),
        (["share=0.5", "copies=true"], True),
        (["share=0.5", "copies=true", "costs.hidden=0"], False),
    ],
)
def test_copies_are_seen_where_they_count(changes, seen) -> None:
    overrides = [one if one.startswith("costs") else f"augmentation.hide.{one}" for one in changes]
    assert seen_in_training(load_recipe("birds", overrides)) == seen

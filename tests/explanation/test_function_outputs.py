"""Functions as people have them: whatever they give, one row of numbers for each image."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import explain_function
from protopfaith.explanation.function_outputs import FunctionOutputs, as_rows, first_channels


def plain(x: Tensor) -> Tensor:
    return torch.stack([x.mean((1, 2, 3)), x.amax((1, 2, 3)), -x[:, 0].mean((1, 2))], 1)


def one_image(x: Tensor) -> Tensor:
    assert len(x) == 1
    return plain(x)


def one_row(x: Tensor) -> Tensor:
    """As functions of one image give it: a row without a batch."""
    return plain(x[:1])[0]


KINDS: dict[str, Callable[[Tensor], Any]] = {
    "an array": lambda x: plain(x).numpy(),
    "an array of double precision": lambda x: plain(x).double().numpy(),
    "lists": lambda x: plain(x).tolist(),
    "a tuple": lambda x: (plain(x), torch.zeros(len(x), 7)),
    "a list of tensors": lambda x: [plain(x), plain(x)],
    "a dictionary": lambda x: {"features": torch.zeros(len(x), 7), "logits": plain(x)},
    "a dictionary without logits": lambda x: {"scores": plain(x)},
    "a dictionary with the batch's loss": lambda x: {"loss": x.mean(), "classes": plain(x)},
    "an object": lambda x: SimpleNamespace(logits=plain(x)),
    "an object as of CLIP": lambda x: SimpleNamespace(text=torch.zeros(1, 7), logits_per_image=plain(x)),
    "an object without logits": lambda x: SimpleNamespace(classes=plain(x), name="it"),
    "maps of one position": lambda x: plain(x)[:, :, None, None],
    "one image at a time": one_image,
    "one row for one image": one_row,
    "channels last": lambda x: plain(x.permute(0, 2, 3, 1).permute(0, 3, 1, 2)),
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_says_the_same(name: str) -> None:
    answers, images = FunctionOutputs(KINDS[name]), torch.rand(5, 3, 8, 8)
    for count in (5, 1, 3):
        assert torch.allclose(answers(images[:count]).float(), plain(images[:count]), atol=1e-6)


@pytest.mark.parametrize("name", ["lists", "a tuple", "one row for one image"])
def test_and_is_explained_alike(name: str) -> None:
    image = torch.rand(3, 16, 16)
    asked = {"outputs": [0, 1], "players": 8, "estimator": "exact"}
    expected = explain_function(plain, image, **asked)
    found = explain_function(KINDS[name], image, **asked)
    for one, other in zip(found.outputs, expected.outputs, strict=True):
        assert torch.allclose(one.regions.values, other.regions.values, atol=1e-6)


BAD: dict[str, Any] = {
    "a map": torch.zeros(2, 3, 4, 4),
    "nothing": None,
    "a word": "cat",
    "words": ["cat", "dog"],
    "rows of different lengths": [[1.0], [1.0, 2.0]],
    "no rows": torch.zeros(0),
    "too many": torch.zeros(3, 2),
    "complex numbers": torch.zeros(2, 2, dtype=torch.complex64),
    "an empty dictionary": {},
    "an empty list": [],
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_row_for_each_image_is_one_sentence(name: str) -> None:
    assert as_rows(BAD[name], 2) is None
    with pytest.raises(ProtoPFaithError, match="should give one number"):
        FunctionOutputs(lambda x: BAD[name])(torch.zeros(2, 3, 8, 8))


def test_a_function_that_fails_is_one_sentence_that_says_what_it_gets() -> None:
    def wants_another_layout(x: Tensor) -> Tensor:
        assert x.shape[-1] == 3, "channels last, please"
        return x.mean((1, 2, 3))

    with pytest.raises(ProtoPFaithError, match=r"channels last, please.*permute"):
        FunctionOutputs(wants_another_layout)(torch.zeros(2, 3, 8, 8))


def test_a_function_that_changes_its_images_changes_no_others() -> None:
    image = torch.rand(3, 16, 16)
    before = image.clone()
    found = explain_function(
        lambda x: x.mul_(2).mean((1, 2, 3)), image, players=8, estimator="exact", baseline=0.5
    )
    assert torch.equal(image, before)
    assert found.outputs[0].value == pytest.approx(2 * float(before.mean()))
    assert found.outputs[0].regions.total == pytest.approx(found.outputs[0].value - 1, abs=1e-5)


def test_moments_need_layers() -> None:
    with pytest.raises(ProtoPFaithError, match="samples"):
        explain_function(lambda x: x.mean((1, 2, 3)), torch.rand(3, 16, 16), players=8, estimator="dasp")


def test_a_gray_network_gets_gray_images() -> None:
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    assert first_channels(network) == 1
    image = np.random.default_rng(0).integers(0, 255, (40, 40), dtype=np.uint8)
    found = explain_function(network, image, players=112, budget=32)
    assert len(found.outputs) == 2
    assert first_channels(nn.Linear(2, 2)) is None


def test_memory_that_runs_out_on_one_image_is_told() -> None:
    def starving(images: torch.Tensor) -> torch.Tensor:
        raise MemoryError

    with pytest.raises(ProtoPFaithError, match="Memory ran out on a single image"):
        FunctionOutputs(starving)(torch.zeros(1, 3, 8, 8))


def test_numbers_that_are_masked_are_no_numbers() -> None:
    assert as_rows(np.ma.masked_less(np.array([[1.0, -1.0]]), 0), 1) is None
    found = as_rows(np.ma.masked_less(np.array([[1.0, 2.0]]), 0), 1)
    assert found is not None
    assert found.tolist() == [[1.0, 2.0]]


def test_which_of_several_results_is_explained_is_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="protopfaith"):
        found = as_rows({"embedding": torch.zeros(2, 7), "class scores": torch.ones(2, 3)}, 2)
    assert found is not None
    assert found.shape == (2, 7)
    assert "gives embedding, class scores, of which 'embedding' is explained" in caplog.text

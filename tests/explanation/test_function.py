"""Any function of images: its maps are the Shapley values of its outputs."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn

from protopfaith.data import Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import explain_function, load_function_explanation


def quarters(x: Tensor) -> Tensor:
    """Two outputs that are no sums over regions."""
    corners = torch.stack(
        [x[:, :, i : i + 8, j : j + 8].mean((1, 2, 3)) for i in (0, 8) for j in (0, 8)], dim=1
    )
    return torch.stack([corners[:, 0] * corners[:, 1] + corners[:, 3], corners.square().sum(1)], dim=1)


def slow_shapley(function: Any, image: Tensor) -> Tensor:
    """By its definition, over all orders of the four regions."""
    values = torch.zeros(2, 4, dtype=torch.float64)
    for order in itertools.permutations(range(4)):
        shown = torch.zeros_like(image)
        before = function(shown[None])[0]
        for player in order:
            rows, columns = (slice(8 * part, 8 * part + 8) for part in divmod(player, 2))
            shown[:, rows, columns] = image[:, rows, columns]
            after = function(shown[None])[0]
            values[:, player] += (after - before).double()
            before = after
    return values / math.factorial(4)


def test_maps_are_shapley_values() -> None:
    image = torch.rand(3, 16, 16) + 0.2
    found = explain_function(quarters, image, outputs=[0, 1], players=8, estimator="exact")
    slow = slow_shapley(quarters, image)
    for one, expected in zip(found.outputs, slow, strict=True):
        assert torch.allclose(one.regions.values.double(), expected, atol=1e-5)
        assert one.regions.total == pytest.approx(one.value - one.empty, abs=1e-5)
        assert float(one.regions.map().sum()) == pytest.approx(64 * float(expected.sum()), rel=1e-4)


def test_sampled_maps_have_errors_and_add_up() -> None:
    network = nn.Sequential(
        nn.Conv2d(3, 4, 5), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(4, 5)
    )
    image = torch.randn(3, 48, 48)
    found = explain_function(network, image, players=8, budget=200)
    assert len(found.outputs) == 3  # the largest ones
    values = network(image[None])[0]
    assert [one.number for one in found.outputs] == values.argsort(descending=True)[:3].tolist()
    for one in found.outputs:
        assert one.regions.errors_known
        assert float(one.regions.values.sum()) == pytest.approx(one.value - one.empty, abs=1e-4)
    assert found.evaluations <= 200


def test_outputs_by_name_number_and_none() -> None:
    image, names = torch.ones(3, 16, 16), ["product", "squares"]

    def chosen(outputs: Any) -> list[str]:
        found = explain_function(quarters, image, outputs, names, players=8, budget=64)
        return [one.name for one in found.outputs]

    assert chosen("squares") == chosen(1) == ["squares"]
    assert chosen([1, "product"]) == ["squares", "product"]
    assert chosen(None) == ["squares", "product"]  # 4 and 2
    assert explain_function(lambda x: x.sum((1, 2, 3)), image, players=8).outputs[0].name == "output 0"


def test_arrays_and_modules_in_training_are_taken() -> None:
    image = torch.ones(3, 16, 16)
    found = explain_function(lambda x: quarters(x).numpy(), image, 0, players=8, budget=64)
    assert found.outputs[0].value == pytest.approx(2)
    network = nn.Sequential(nn.Dropout(0.9), nn.Flatten(), nn.Linear(768, 2)).train()
    explain_function(network, image, players=8, budget=64)
    assert network.training  # the caller's own stays as it was


@pytest.mark.parametrize("kind", ["path", "pillow", "uint8", "array"])
def test_images_of_any_kind_are_prepared(kind: str, tmp_path: Path) -> None:
    pixels = torch.randint(0, 255, (3, 30, 40), dtype=torch.uint8)
    pillow = Image.fromarray(pixels.permute(1, 2, 0).numpy())
    pillow.save(tmp_path / "a.png")
    images = {"path": tmp_path / "a.png", "pillow": pillow, "uint8": pixels, "array": np.asarray(pillow)}
    preprocessing = Preprocessing((16, 16))
    found = explain_function(quarters, images[kind], preprocessing=preprocessing, players=8, budget=64)
    assert found.outputs[0].value in quarters(preprocessing(pillow)[None])[0].tolist()
    assert found.pixels.shape == (3, 16, 16)
    own = explain_function(
        quarters, images[kind], preprocessing=lambda p: preprocessing(p)[None], players=8, budget=64
    )
    assert own.outputs[0].value == pytest.approx(found.outputs[0].value)


def test_torchvisions_transforms_are_shown_as_they_crop(tmp_path: Path) -> None:
    from torchvision.transforms._presets import ImageClassification

    pillow = Image.fromarray(np.random.default_rng(0).integers(0, 255, (30, 40, 3), dtype=np.uint8))
    transforms = ImageClassification(crop_size=16, resize_size=20)
    found = explain_function(quarters, pillow, preprocessing=transforms, players=8, budget=64)
    mean, std = (torch.tensor(values)[:, None, None] for values in (transforms.mean, transforms.std))
    assert torch.allclose(found.pixels / 255, transforms(pillow) * std + mean, atol=0.003)


def scene(mode: str) -> Image.Image:
    """A picture of another kind than 8-bit colors."""
    values = np.random.default_rng(0).integers(0, 2**16, (30, 40), dtype=np.uint16)
    if mode == "16 bits":
        return Image.fromarray(values)
    return Image.fromarray(np.stack([(values >> shift).astype(np.uint8) for shift in (0, 2, 4, 6)], axis=2))


@pytest.mark.parametrize("mode", ["16 bits", "transparent"])
def test_a_pillow_image_is_read_as_its_file(mode: str, tmp_path: Path) -> None:
    """Pillow itself makes 16 bits white, and forgets what lies below transparency."""
    scene(mode).save(tmp_path / "a.png")
    prepare = Preprocessing((16, 16))
    for preprocessing in (prepare, prepare.__call__):
        made, read = (
            explain_function(quarters, image, preprocessing=preprocessing, players=8, budget=64)
            for image in (scene(mode), tmp_path / "a.png")
        )
        assert torch.equal(made.pixels, read.pixels)
        assert [one.value for one in made.outputs] == [one.value for one in read.outputs]
    assert float(made.pixels.float().std()) > 5


def test_the_path_says_nothing_of_the_machine(tmp_path: Path) -> None:
    scene("16 bits").save(tmp_path / "a.png")
    for preprocessing in (Preprocessing((16, 16)), Preprocessing((16, 16)).__call__):
        found = explain_function(
            quarters, tmp_path / "a.png", preprocessing=preprocessing, players=8, budget=64
        )
        assert (found.path, found.name) == ("a.png", "a.png")


@pytest.mark.parametrize("shape", [(16, 16), (16, 16, 1), (16, 16, 3), (1, 16, 16), (3, 16, 16)])
def test_arrays_of_any_layout_go_through_a_function_of_the_callers(shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).integers(0, 255, shape, dtype=np.uint8)
    prepare = Preprocessing((16, 16))
    one, two = (
        explain_function(quarters, array, preprocessing=how, players=8, budget=64)
        for how in (prepare, prepare.__call__)
    )
    assert [each.value for each in one.outputs] == [each.value for each in two.outputs]


def test_an_array_of_floats_is_the_input_itself_as_a_tensor_is() -> None:
    image = torch.rand(3, 16, 16)
    one, two = (explain_function(quarters, given, players=8, budget=64) for given in (image, image.numpy()))
    assert [each.value for each in one.outputs] == [each.value for each in two.outputs]


@pytest.mark.parametrize("channels", [2, 5])
def test_images_of_many_channels_are_shown_in_gray(channels: int, tmp_path: Path) -> None:
    image = torch.rand(channels, 16, 16)
    found = explain_function(lambda x: x.mean((2, 3)), image, players=8, budget=64)
    assert found.pixels.shape == (1, 16, 16)
    assert found.report(tmp_path / "why.html").exists()
    found.figure(tmp_path / "why.png")


def test_a_network_in_double_precision_is_asked_in_it() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(768, 2)).double().requires_grad_(False)
    image = torch.rand(3, 16, 16)
    found = explain_function(network, image, outputs=np.int64(1), players=8, budget=64)
    assert found.outputs[0].value == pytest.approx(float(network(image.double()[None])[0, 1]), abs=1e-12)


WRONG: dict[str, tuple[Any, dict[str, Any]]] = {
    "must be a function, a path or text": (3, {}),
    "should give one number": (lambda x: x, {}),
    "gives 'text'": (lambda x: "text", {}),
    "for 1 images": (lambda x: torch.zeros(5, 2), {}),
    "not finite": (lambda x: x.sum((1, 2, 3)) * float("nan"), {}),
    "3 names were given": (quarters, {"names": ["a", "b", "c"]}),
    "did you mean 'squares'": (quarters, {"names": ["product", "squares"], "outputs": "square"}),
    "give names=": (quarters, {"outputs": "square"}),
    "from 0 to 1": (quarters, {"outputs": 2}),
    "at least one": (quarters, {"outputs": []}),
    r"a tensor of shape \(1, 3, 16, 16\).*function\(x\)\.mean": (lambda x: x, {}),
    r"shape \(1, 3, 16, 16\).*function\(x\)\[": (lambda x: {"out": x}, {}),
    "Flatten is a class": (nn.Flatten, {}),
    "weights without numbers": (nn.Linear(2, 2, device="meta"), {}),
    "There is no file": ("nothing.onnx", {}),
    "float tensor of channels": (quarters, {"preprocessing": lambda p: "none"}),
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_functions_and_outputs_are_one_sentence(words: str) -> None:
    function, options = WRONG[words]
    image: Any = torch.ones(3, 16, 16)
    if "preprocessing" in options:
        image = Image.new("RGB", (16, 16))
    with pytest.raises(ProtoPFaithError, match=words):
        explain_function(function, image, players=8, budget=64, **options)


def test_an_unknown_setting_is_told() -> None:
    with pytest.raises(TypeError, match="did you mean 'players'"):
        explain_function(quarters, torch.ones(3, 16, 16), player=8)


def test_it_comes_back_from_its_files(tmp_path: Path) -> None:
    found = explain_function(quarters, torch.rand(3, 16, 16), players=8, budget=64, names=["a", "b"])
    text, arrays = found.save(tmp_path / "why")
    again = load_function_explanation(text)
    assert repr(again) == repr(found)
    assert torch.equal(again.outputs[0].regions.values, found.outputs[0].regions.values)
    assert torch.equal(again.pixels, found.pixels)
    assert json.loads(text.read_text())["outputs"][0]["name"] == found.outputs[0].name
    assert arrays.is_file()
    from protopfaith.explanation import load_explanation

    with pytest.raises(ProtoPFaithError, match="describes something else"):
        load_explanation(text)


def test_what_a_preprocessing_raises_is_told_with_its_cause() -> None:
    picture = Image.new("RGB", (16, 16))
    with pytest.raises(ProtoPFaithError, match="preprocessing fails on a Pillow image \\(TypeError") as told:
        explain_function(quarters, picture, preprocessing=int, players=8)  # type: ignore[arg-type]
    assert isinstance(told.value.__cause__, TypeError)


def test_names_may_be_an_array_and_one_that_is_there_twice_is_no_name() -> None:
    names, image = np.array(["left", "left", "right"]), torch.rand(3, 16, 16)
    plan: dict[str, Any] = {"names": names, "players": 8, "estimator": "exact"}

    def three(x: Tensor) -> Tensor:
        return x.mean((2, 3))

    assert explain_function(three, image, "right", **plan).outputs[0].number == 2
    with pytest.raises(ProtoPFaithError, match="2 outputs named 'left'"):
        explain_function(three, image, "left", **plan)


@pytest.mark.parametrize("made", [torch.zeros(3, 32, 32, dtype=torch.uint8), np.zeros((3, 32, 32), np.uint8)])
def test_what_a_preprocessing_gives_is_told_with_its_type(made):
    with pytest.raises(ProtoPFaithError, match=r"of shape \(3, 32, 32\) \(uint8\).*float tensor"):
        explain_function(quarters, Image.new("RGB", (32, 32)), preprocessing=lambda image: made)


def test_a_run_is_explained_by_another_function(tmp_path):
    image = torch.ones(3, 32, 32)
    with pytest.raises(ProtoPFaithError, match="is a folder, where an ONNX model"):
        explain_function(tmp_path, image)
    (tmp_path / "recipe.yaml").touch()
    with pytest.raises(ProtoPFaithError, match=r"is a run.*pf\.explain\(run, image\)"):
        explain_function(str(tmp_path), image)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("second_baseline", "blur:2"), ("output", "versus"), ("sources", True), ("source_parts", True)),
        *(("source_budget", 64), ("duplicate_tolerance", 0.1)),
    ],
)
def test_settings_that_mean_nothing_for_a_function_are_told(name, value):
    with pytest.raises(ProtoPFaithError, match=f"{name}.*means nothing for a function"):
        explain_function(quarters, torch.ones(3, 32, 32), **{name: value})

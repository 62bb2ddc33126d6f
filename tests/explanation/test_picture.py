from __future__ import annotations

from pathlib import Path

import pytest
import torch
from PIL import Image

from protopfaith.data import Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer, explain
from protopfaith.explanation.picture import open_mask, to_pil
from protopfaith.network import ProtoPNet


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "1"])
def test_other_sizes_and_modes_are_converted(explainer: Explainer, pixels: torch.Tensor, mode: str) -> None:
    picture = to_pil(pixels).resize((70, 31)).convert(mode)
    found = explain(explainer, picture, budget=96, sources=False)
    assert found.pixels.shape == (3, 48, 48)
    assert found.original_size == (31, 70)


def test_equal_images_have_equal_explanations(
    explainer: Explainer, pixels: torch.Tensor, tmp_path: Path
) -> None:
    to_pil(pixels).save(tmp_path / "bird.png")
    images = [tmp_path / "bird.png", str(tmp_path / "bird.png"), pixels, explainer.preprocessing(pixels)]  # type: ignore[misc]
    results = [explain(explainer, image, budget=96, sources=False) for image in images]
    for one in results[1:]:
        assert torch.allclose(one.class_map.values, results[0].class_map.values, atol=1e-4)


def test_images_may_be_opened_by_others(explainer: Explainer) -> None:
    found = explain(explainer, Image.new("RGB", (48, 48), "white"), budget=96, sources=False)
    assert found.name == "image"


def test_pixels_that_cannot_be_read_are_one_sentence(
    explainer: Explainer, pixels: torch.Tensor, tmp_path: Path
) -> None:
    to_pil(pixels).save(tmp_path / "cut.png")
    content = (tmp_path / "cut.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(content[: len(content) // 2])
    closed = Image.open(tmp_path / "cut.png")
    closed.close()
    for image in (Image.open(tmp_path / "cut.png"), closed):
        with pytest.raises(ProtoPFaithError, match="pixels of a Pillow image cannot be read"):
            explain(explainer, image, budget=96, sources=False)


def test_images_with_one_channel(tmp_path: Path) -> None:
    """As X-rays are: network, report and figure take one channel."""
    torch.manual_seed(0)
    model = ProtoPNet("small", ["healthy", "ill"], 2, 8, in_channels=1).eval()
    preprocessing = Preprocessing((48, 48), 1, (0.5,), (0.25,))
    picture = Image.new("RGB", (60, 80), "gray")
    found = explain(model, picture, preprocessing=preprocessing, budget=96, sources=False)
    assert found.pixels.shape == (1, 48, 48)
    assert found.original_size == (80, 60)
    found.report(tmp_path / "report.html")
    found.figure(path=tmp_path / "figure.png", dpi=50)
    assert "<img" in found._repr_html_()


def test_floats_from_zero_to_one_are_pixels(explainer: Explainer, pixels: torch.Tensor) -> None:
    """Not normalized yet, and never taken for it."""
    as_bytes = explainer.open(pixels)
    as_floats = explainer.open(pixels.float() / 255)
    assert torch.allclose(as_floats.input, as_bytes.input, atol=1e-5)
    assert torch.equal(as_floats.pixels, as_bytes.pixels)
    normalized = explainer.open(as_bytes.input)
    assert torch.equal(normalized.input, as_bytes.input)
    large = torch.nn.functional.interpolate(pixels[None].float() / 255, (96, 96))[0]
    assert explainer.open(large).input.shape == (3, 48, 48)


@pytest.mark.parametrize("shape", [(5, 48, 48), (2, 48, 48), (0, 48, 48), (3, 0, 48), (48, 48)])
def test_bytes_that_are_no_picture_are_one_sentence(explainer: Explainer, shape: tuple[int, ...]) -> None:
    for image in (torch.zeros(shape, dtype=torch.uint8), torch.zeros(shape)):
        with pytest.raises(ProtoPFaithError):
            explainer.open(image)


def test_arrays_are_images_too(explainer: Explainer, pixels: torch.Tensor) -> None:
    expected = explainer.open(pixels).input
    array = pixels.permute(1, 2, 0).numpy()
    assert torch.equal(explainer.open(array).input, expected)
    assert torch.equal(explainer.open(pixels.numpy()).input, expected)
    assert torch.allclose(explainer.open((array / 255).astype("float32")).input, expected, atol=1e-5)


def test_a_photo_is_upright_however_it_is_given(explainer: Explainer, tmp_path: Path) -> None:
    photo, exif = Image.effect_noise((40, 30), 80), Image.Exif()
    exif[0x0112] = 6  # the camera was turned by a quarter
    photo.save(tmp_path / "photo.png", exif=exif)
    with Image.open(tmp_path / "photo.png") as opened:
        given = explainer.open(opened).pixels
    assert torch.equal(given, explainer.open(tmp_path / "photo.png").pixels)
    assert torch.equal(given, explainer.open(photo.transpose(Image.Transpose.ROTATE_270)).pixels)


@pytest.mark.parametrize("shape", [(40, 30), (80, 60), (24, 24), (12, 12), (41, 31)])
def test_masks_lie_on_the_image(shape: tuple[int, int]) -> None:
    assert open_mask(torch.ones(shape), (24, 24), (40, 30)).all()


def test_a_mask_of_other_proportions_is_refused() -> None:
    with pytest.raises(ProtoPFaithError, match="30 x 60 pixels and the image 30 x 40"):
        open_mask(torch.ones(60, 30), (24, 24), (40, 30))


@pytest.mark.parametrize("brightest", [255, 4095])
def test_floats_of_other_scales_are_refused(
    explainer: Explainer, pixels: torch.Tensor, brightest: int
) -> None:
    with pytest.raises(ProtoPFaithError, match=r"neither in 0\.\.1 nor normalized"):
        explainer.open(pixels.float() / 255 * brightest)


@pytest.mark.parametrize("values", [(-1000.0, -1000.0), (-255.0, 0.0), (-1e30, 0.0), (-1000.0, 3000.0)])
def test_floats_far_below_black_are_refused_as_well(
    explainer: Explainer, pixels: torch.Tensor, values: tuple[float, float]
) -> None:
    low, high = values
    with pytest.raises(ProtoPFaithError, match=r"with values from .* neither in 0\.\.1 nor normalized"):
        explainer.open(low + (high - low) * pixels.float() / 255)


def test_noise_is_no_wrong_scale(explainer: Explainer, pixels: torch.Tensor) -> None:
    noise = torch.randn(pixels.shape, generator=torch.Generator().manual_seed(0))
    noise[0, 0, 0] = -5
    assert torch.equal(explainer.open(noise).input.cpu(), noise)


def test_normalized_floats_are_taken_as_they_are(explainer: Explainer, pixels: torch.Tensor) -> None:
    normalized = explainer.open(pixels).input
    assert torch.equal(explainer.open(normalized).input, normalized)
    white = explainer.open(torch.full_like(pixels, 255)).input
    assert torch.equal(explainer.open(white).input, white)


def test_a_mask_of_a_small_object_is_not_empty() -> None:
    mask = torch.zeros(400, 400)
    mask[101, 203] = 1
    found = open_mask(mask, (32, 32))
    assert torch.nonzero(found).tolist() == [[8, 16]]


@pytest.mark.parametrize("kind", [torch.float32, torch.int16, torch.int64])
def test_a_mask_has_no_negative_numbers(kind: torch.dtype) -> None:
    with pytest.raises(ProtoPFaithError, match="negative"):
        open_mask(torch.tensor([[0, 1], [-1, 0]], dtype=kind), (4, 4))
    assert open_mask(torch.tensor([[0, 1], [0, 1]], dtype=kind), (4, 4)).any()


@pytest.mark.parametrize("size", [(24, 24), (24, 8)])
def test_a_mask_file_that_cannot_be_used_is_named(size: tuple[int, int], tmp_path: Path) -> None:
    Image.new("L", size, 255 if size[0] != size[1] else 0).save(tmp_path / "mine.png")
    with pytest.raises(ProtoPFaithError, match=r"mine\.png cannot be used\. The mask (is empty|has)"):
        open_mask(tmp_path / "mine.png", (24, 24), (24, 24))

"""The batched transform against torchvision's, first exactly for given parameters, then in distribution."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import ks_2samp
from torchvision import tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as reference

from protopfaith.data.transforms import (
    Augmentation,
    augment,
    cpu_transform,
    random_matrices,
    warp,
    warp_boxes,
    warp_points,
)
from protopfaith.training import load_recipe

SIZE = (30, 40)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def matrix(
    angle: float, shear: float, scale: float, shift: tuple[float, float], mirror: bool
) -> torch.Tensor:
    """The slow, obvious way: one 3 x 3 matrix after the other."""
    t, k = math.radians(angle), math.tan(math.radians(shear))
    height, width = SIZE
    to_center = torch.tensor([[1, 0, -width / 2], [0, 1, -height / 2], [0, 0, 1]])
    shearing = torch.tensor([[1, -k, 0], [0, 1, 0], [0, 0, 1]])
    rotating = torch.tensor([[math.cos(t), -math.sin(t), 0], [math.sin(t), math.cos(t), 0], [0, 0, 1]])
    scaling = torch.diag(torch.tensor([scale, scale, 1.0]))
    moving = torch.tensor([[1, 0, shift[0]], [0, 1, shift[1]], [0, 0, 1.0]])
    mirroring = torch.diag(torch.tensor([-1.0 if mirror else 1.0, 1, 1]))
    steps = [to_center, shearing, rotating, scaling, moving, mirroring, torch.linalg.inv(to_center)]
    total = torch.eye(3)
    for step in steps:
        total = step @ total
    return total[None, :2]


def smooth_images(count: int) -> torch.Tensor:
    noise = torch.rand(count, 3, 6, 8, generator=generator(9))
    return (torch.nn.functional.interpolate(noise, SIZE, mode="bicubic").clamp(0, 1) * 255).round()


@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.parametrize(
    ("angle", "shear", "scale", "shift"),
    [
        (0, 0, 1, (0, 0)),
        (25, 0, 1, (0, 0)),
        (-20, 15, 1, (0, 0)),
        (10, -10, 1.1, (3, -5)),
        (45, 0, 0.85, (-6, 2)),
    ],
)
def test_given_parameters_move_pixels_as_torchvision_does(
    angle: float, shear: float, scale: float, shift: tuple[int, int], mirror: bool
) -> None:
    images = smooth_images(2)
    expected = reference.affine(
        images, angle, list(shift), scale, [shear, 0.0], interpolation=v2.InterpolationMode.BILINEAR
    )
    expected = reference.horizontal_flip(expected) if mirror else expected
    moved = warp(images, matrix(angle, shear, scale, shift, mirror).expand(2, -1, -1))
    # At the rim of the content the two fill differently; everywhere else they must agree.
    rim = functional_erode(
        warp(torch.ones_like(images), matrix(angle, shear, scale, shift, mirror).expand(2, -1, -1))
    )
    assert rim.float().mean() > 0.3
    assert (moved - expected).abs()[rim].max() < 0.05


def functional_erode(content: torch.Tensor) -> torch.Tensor:
    return -torch.nn.functional.max_pool2d(-content, 3, 1, 1) > 0.999


def test_random_matrices_are_products_of_the_single_steps() -> None:
    """Every drawn matrix, taken apart again, has parameters inside the asked range."""
    augmentation = Augmentation(25, 15, 0.1, (0.8, 1.2), 0.5)
    for drawn in random_matrices(augmentation, 50, SIZE, generator()):
        linear = drawn[:, :2].clone()
        mirror = bool(torch.det(linear) < 0)
        if mirror:
            linear[0] *= -1
        scale = math.hypot(linear[0, 0], linear[1, 0])
        angle = math.degrees(math.atan2(linear[1, 0], linear[0, 0]))
        turned = (
            torch.tensor([[linear[0, 0], linear[1, 0]], [-linear[1, 0], linear[0, 0]]]) / scale**2 @ linear
        )
        shear = -math.degrees(math.atan(turned[0, 1]))
        half = torch.tensor([SIZE[1] / 2, SIZE[0] / 2])
        right, down = (drawn[:, :2] @ half + drawn[:, 2] - half).tolist()
        right = -right if mirror else right
        assert abs(angle) <= 25
        assert abs(shear) <= 15
        assert 0.8 <= scale <= 1.2
        assert abs(right) <= 4 + 1e-4
        assert abs(down) <= 3 + 1e-4
        assert abs(right - round(right)) < 1e-4
        assert torch.allclose(matrix(angle, shear, scale, (right, down), mirror)[0], drawn, atol=1e-3)


MARKED = torch.tensor([[120.0, 150.0], [270.0, 170.0], [180.0, 280.0]])
CANVAS = (400, 400)


def torchvision_moves(augmentation: Augmentation, draws: int) -> torch.Tensor:
    """Where three marked points go; torchvision moves boxes, so each point is a box without extent."""
    boxes = tv_tensors.BoundingBoxes(torch.cat([MARKED, MARKED], 1), format="XYXY", canvas_size=CANVAS)
    transform = cpu_transform(augmentation, CANVAS)
    torch.manual_seed(0)
    return torch.stack([transform(boxes)[:, :2] for _ in range(draws)])


def our_moves(augmentation: Augmentation, draws: int) -> torch.Tensor:
    return warp_points(
        MARKED.expand(draws, -1, -1), random_matrices(augmentation, draws, CANVAS, generator())
    )


def smallest_p_value(theirs: torch.Tensor, ours: torch.Tensor) -> float:
    """Kolmogorov-Smirnov tests of where the points are and of how they lie to each other."""

    def features(points: torch.Tensor) -> np.ndarray:
        sides = points[:, 1:] - points[:, :1]
        area = sides[:, 0, 0] * sides[:, 1, 1] - sides[:, 0, 1] * sides[:, 1, 0]
        lengths = sides.norm(dim=2)
        cosine = (sides[:, 0] * sides[:, 1]).sum(1) / lengths.prod(1)
        steep = sides[:, :, 1] / sides[:, :, 0].abs()
        columns = [points.flatten(1), sides.flatten(1), lengths, steep, area[:, None], cosine[:, None]]
        # Rounded, so that a constant is the same constant in both.
        return torch.cat(columns, 1).double().numpy().round(2).T

    return min(float(ks_2samp(a, b).pvalue) for a, b in zip(features(theirs), features(ours), strict=True))


@pytest.mark.parametrize("name", ["cub", "rsna_resnet", "birds"])
def test_both_ways_have_the_same_distribution(name: str) -> None:
    """And the same tests tell apart any setting that is off."""
    # torchvision does not move boxes with a reflection; the fill has no part in where points go.
    augmentation = replace(load_recipe(name).augmentation, padding="zeros")
    theirs = torchvision_moves(augmentation, 400)
    assert smallest_p_value(theirs, our_moves(augmentation, 3000)) > 1e-3
    low, high = augmentation.scale
    for off in (
        {"rotation": 0.6 * augmentation.rotation},
        {"shear": augmentation.shear + 10},
        {"translation": augmentation.translation + 0.1},
        {"scale": (low - 0.1, high)},
        {"flip": augmentation.flip + 0.3},
    ):
        other = replace(augmentation, **off)  # type: ignore[arg-type]
        assert smallest_p_value(theirs, our_moves(other, 3000)) < 1e-6, off


@pytest.mark.parametrize("name", ["cub", "rsna_resnet", "birds"])
def test_both_ways_have_the_same_pixel_statistics(name: str) -> None:
    augmentation = load_recipe(name).augmentation
    image = smooth_images(1)[0]
    if augmentation.padding == "zeros":
        # torchvision blends the rim of the content into the fill twice; a black frame leaves it nothing to
        # blend.
        image = torch.nn.functional.pad(image[:, 2:-2, 2:-2], (2, 2, 2, 2))
    transform = cpu_transform(augmentation, SIZE)
    torch.manual_seed(1)
    theirs = torch.stack([transform(image) for _ in range(300)])
    ours = augment(image.expand(300, -1, -1, -1), augmentation, generator(1))
    error = ((theirs.var(0) + ours.var(0)) / 300).sqrt()
    deviation = (theirs.mean(0) - ours.mean(0)).abs() / (error + 0.3)
    assert deviation.max() < 6
    assert abs(theirs.mean() - ours.mean()) < 2
    assert torch.allclose(theirs.std(0).mean(), ours.std(0).mean(), rtol=0.05)


COLORS = Augmentation(color=0.4)


def color_statistics(images: torch.Tensor) -> np.ndarray:
    """Mean, spread and colorfulness of each image."""
    columns = [
        images.mean((1, 2, 3)),
        images.std((1, 2, 3)),
        (images[:, 0] - images[:, 2]).abs().mean((1, 2)),
    ]
    return torch.stack(columns).double().numpy()


def test_colors_have_torchvisions_distribution() -> None:
    image = smooth_images(1)[0]
    transform = cpu_transform(COLORS, SIZE)
    torch.manual_seed(0)
    theirs = color_statistics(255 * torch.stack([transform(image / 255) for _ in range(500)]))

    def p_value(augmentation: Augmentation) -> float:
        ours = color_statistics(augment(image.expand(3000, -1, -1, -1), augmentation, generator()))
        return min(float(ks_2samp(a, b).pvalue) for a, b in zip(theirs, ours, strict=True))

    assert p_value(COLORS) > 1e-3
    assert p_value(replace(COLORS, color=0.3)) < 1e-6


def test_colors_stay_in_range_and_gray_stays_gray() -> None:
    changed = augment(smooth_images(50), Augmentation(color=1.0), generator())
    assert changed.min() >= 0
    assert changed.max() <= 255
    gray = smooth_images(50)[:, :1]
    as_color = augment(gray.expand(-1, 3, -1, -1), Augmentation(color=0.5), generator())
    torch.testing.assert_close(as_color, as_color[:, :1].expand(-1, 3, -1, -1))
    assert augment(gray, Augmentation(color=0.5), generator()).shape == gray.shape


def test_smaller_training_images_show_the_same() -> None:
    images = smooth_images(4)
    half = augment(images, Augmentation(size=(15, 20)), generator())
    expected = torch.nn.functional.interpolate(images, size=(15, 20), mode="bilinear")
    torch.testing.assert_close(half, expected, atol=1e-3, rtol=0)
    through_torchvision = cpu_transform(Augmentation(size=(15, 20)), SIZE)(images)
    torch.testing.assert_close(half, through_torchvision, atol=1e-3, rtol=0)


def test_nothing_asked_nothing_done() -> None:
    images = smooth_images(2).to(torch.uint8)
    assert torch.equal(augment(images, Augmentation(), generator()), images.float())


def test_the_generator_decides() -> None:
    images = smooth_images(4)
    first, again = (augment(images, load_recipe("birds").augmentation, generator(3)) for _ in range(2))
    other = augment(images, load_recipe("birds").augmentation, generator(4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(
        augment(images[:1].expand(2, -1, -1, -1), load_recipe("birds").augmentation, generator(3))[0],
        first[1],
    )


def test_points_and_boxes_stay_on_what_they_mark() -> None:
    """A bright square is found again inside its moved box, and its center at the moved point."""
    images = torch.zeros(20, 1, 60, 60)
    images[:, :, 24:32, 30:40] = 1
    matrices = random_matrices(Augmentation(25, 15, 0.1, (0.9, 1.1), 0.5), 20, (60, 60), generator())
    moved = warp(images, matrices)[:, 0]
    rows, columns = torch.meshgrid(torch.arange(60) + 0.5, torch.arange(60) + 0.5, indexing="ij")
    centers = torch.stack([(moved * axis).sum((1, 2)) / moved.sum((1, 2)) for axis in (columns, rows)], 1)
    points = warp_points(torch.tensor([[[35.0, 28.0]]]).expand(20, -1, -1), matrices)[:, 0]
    assert (centers - points).abs().max() < 0.3
    boxes = warp_boxes(torch.tensor([[[30.0, 24.0, 40.0, 32.0]]]).expand(20, -1, -1), matrices)[:, 0]
    for image, (left, top, right, bottom) in zip(moved, boxes.tolist(), strict=True):
        inside = (columns > left - 1) & (columns < right + 1) & (rows > top - 1) & (rows < bottom + 1)
        assert image[~inside].sum() == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_the_gpu_does_the_same() -> None:
    images = smooth_images(8)
    on_cpu = augment(images, load_recipe("cub").augmentation, generator())
    on_gpu = augment(images.cuda(), load_recipe("cub").augmentation, generator())
    assert (on_gpu.cpu() - on_cpu).abs().max() < 0.1

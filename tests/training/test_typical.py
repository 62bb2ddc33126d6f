"""What is usual, against the slow way and on numbers whose distribution is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from protopfaith.network import ProtoPNet
from protopfaith.training.typical import (
    FAINT,
    FEW,
    FEW_PROTOTYPES,
    FEWEST,
    GRAY,
    RANKED,
    SHARES,
    Typical,
    fit_typical,
    looks,
    traits,
    usual_distances,
)


@pytest.fixture(scope="module")
def model() -> ProtoPNet:
    return ProtoPNet("small", ["cat", "dog", "cow"], 2, 8).eval()


def gaussian(count: int, classes: int = 3, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Correlated traits around a mean of each class."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(count) % classes
    mixed = torch.randn(count, 6, generator=generator) @ torch.tensor(
        np.random.default_rng(0).normal(size=(6, 6)), dtype=torch.float32
    )
    return (mixed + 5 * labels[:, None]).double(), labels


def test_traits_are_quantiles_over_own_and_other_prototypes(model: ProtoPNet) -> None:
    images, maps, label = torch.rand(2, 3, 16, 20), torch.rand(2, 6, 4, 5), 1
    found = traits(model, images, maps, torch.tensor([label, label]))
    own = [p for p in range(6) if int(model.prototype_classes[p]) == label]
    others = [p for p in range(6) if p not in own]
    for image in range(2):
        expected = []
        for statistic in (np.min, np.mean, np.std):
            for group in (own, others):
                values = [statistic(maps[image, p].double().numpy()) for p in group]
                expected += [np.quantile(values, share) for share in SHARES]
        for statistic in (np.min, np.std):
            places = statistic(maps[image].double().numpy(), axis=0).ravel()
            expected += [np.quantile(places, share) for share in SHARES]
        for statistic in (np.min, np.mean, np.std):
            expected += [statistic(maps[image, p].double().numpy()) for p in range(6)]
        expected += looks(images)[image].tolist()
        assert found[image].numpy() == pytest.approx(np.array(expected))


def test_prototypes_of_no_class_are_looked_at_together(model: ProtoPNet) -> None:
    maps = torch.rand(2, 6, 4, 5)
    class_of = model.prototype_classes.clone()
    model.prototype_classes.fill_(-1)
    try:
        found = traits(model, torch.rand(2, 1, 8, 8), maps, torch.tensor([0, 2]))
    finally:
        model.prototype_classes.copy_(class_of)
    assert found.shape == (2, 5 * len(SHARES) + 3 * 6 + 3)
    assert found[:, 0].numpy() == pytest.approx(maps.double().amin(dim=(1, 2, 3)).numpy())


def test_many_prototypes_are_only_summed_up() -> None:
    many = ProtoPNet("small", 2, FEW_PROTOTYPES, 4).eval()
    labels = torch.tensor([0])
    found = traits(many, torch.rand(1, 3, 8, 8), torch.rand(1, 2 * FEW_PROTOTYPES, 2, 2), labels)
    assert found.shape == (1, 8 * len(SHARES) + 4)


def test_looks_are_those_of_pixels() -> None:
    images = torch.rand(3, 3, 6, 7)
    for image, (bright, contrast, rough, color) in zip(images.double().numpy(), looks(images), strict=True):
        across, down = np.diff(image, axis=2), np.diff(image, axis=1)
        assert float(bright) == pytest.approx(image.mean())
        assert float(contrast) == pytest.approx(image.std())
        steps = math.sqrt((across**2).mean() + (down**2).mean())
        assert float(rough) == pytest.approx(math.log(steps / image.std()), abs=1e-4)
        agree = min(np.corrcoef(image[0].ravel(), image[c].ravel())[0, 1] for c in (1, 2))
        assert float(color) == pytest.approx(FAINT * math.log(1 - agree), rel=1e-4)


def test_flat_and_gray_images_have_no_color() -> None:
    """However their channels are normalized, and although files with loss tint them a little."""
    gray = torch.rand(1, 1, 8, 8)
    tinted = torch.cat([gray, 2 * gray - 1, gray + 0.01 * torch.rand(1, 1, 8, 8)], dim=1)
    for image in (tinted, torch.ones(1, 3, 8, 8), torch.zeros(1, 3, 1, 1)):
        assert float(looks(image)[0, 3]) == pytest.approx(FAINT * math.log(GRAY))
        assert bool(looks(image).isfinite().all())


def test_a_photograph_is_no_radiograph() -> None:
    """Where all training images are gray, a colored one is far from them, and a faint tint is not."""
    random = torch.Generator().manual_seed(0)
    gray = torch.rand(200, 1, 16, 16, generator=random).expand(-1, 3, -1, -1)
    labels = torch.zeros(100, dtype=torch.long)
    found = looks(gray)
    typical = fit_typical(found[:100], labels, found[100:], labels, 1)
    assert typical is not None
    noise = torch.rand(1, 3, 16, 16, generator=random)
    for strength, expected in ((0.0, False), (0.05, False), (0.6, True)):
        image = gray[:1] + strength * (noise - noise.mean(1, keepdim=True))
        far = float(typical.distances(looks(image), labels[:1])[0])
        assert (far > typical.usual) is expected


@pytest.mark.parametrize("count", [500, RANKED, 30])
def test_about_one_in_a_hundred_further_images_is_farther(count: int) -> None:
    """On average over ten sets of validation images."""
    train, further = gaussian(500, seed=1), gaussian(5_000, seed=2)
    alarms = []
    for seed in range(10):
        fitted = fit_typical(*train, *gaussian(count, seed=10 + seed), 3)
        assert fitted is not None
        alarms.append(float((fitted.distances(*further) > fitted.usual).double().mean()))
    assert 0.002 < np.mean(alarms) < 0.02
    moved = further[0] + torch.tensor([9.0, -9, 9, -9, 9, -9], dtype=torch.float64)
    assert bool((fitted.distances(moved, further[1]) > fitted.usual).double().mean() > 0.9)


def test_an_image_of_another_class_is_far_from_this_one() -> None:
    fitted = fit_typical(*gaussian(500), *gaussian(200, seed=1), 3)
    assert fitted is not None
    found, labels = gaussian(300, seed=2)
    assert float(fitted.distances(found, labels).median()) < float(
        fitted.distances(found, (labels + 1) % 3).median()
    )


def test_few_images_say_nothing_of_what_is_usual() -> None:
    enough, few = gaussian(FEWEST), gaussian(FEWEST - 1)
    assert fit_typical(*enough, *few, 3) is None
    assert fit_typical(*few, *enough, 3) is None
    assert fit_typical(*enough, *enough, 3) is not None
    broken = gaussian(50)
    broken[0][3, 2] = math.nan
    assert fit_typical(*broken, *gaussian(50), 3) is None


def test_traits_that_never_vary_do_no_harm() -> None:
    """As the spread over one position."""
    train, labels = gaussian(100)
    train[:, 2] = 0.0
    fitted = fit_typical(train, labels, train, labels, 3)
    assert fitted is not None
    assert bool(fitted.distances(train, labels).isfinite().all())


def test_it_is_written_and_read() -> None:
    fitted = fit_typical(*gaussian(50), *gaussian(50, seed=1), 3)
    assert fitted is not None
    again = Typical.from_json(fitted.to_json())
    assert again is not None
    assert torch.equal(again.distances(*gaussian(20)), fitted.distances(*gaussian(20)))
    assert again.usual == fitted.usual
    assert Typical.from_json(None) is None
    assert again.fits(torch.zeros(2, 6))
    assert not again.fits(torch.zeros(2, 5))
    with pytest.raises(ValueError, match="other shapes"):
        Typical.from_json({**fitted.to_json(), "scales": [1.0]})


def test_usual_distances_are_quantiles_of_a_class_or_tails_of_all() -> None:
    owners = torch.tensor([0, 0, 1, 2])
    labels = torch.tensor([0] * FEW + [1] * 10 + [2] * 15)
    distances = torch.rand(len(labels), 4, dtype=torch.float64)
    distances[:, 3] *= 7  # distances to the third class are larger
    own = [distances[labels == 0][:, :2].amin(1), distances[labels == 1][:, 2], distances[labels == 2][:, 3]]
    found = usual_distances(distances, labels, owners, 4)
    assert float(found[0]) == pytest.approx(float(torch.quantile(own[0], 0.99)))
    tail = torch.quantile(torch.cat([one / one.median() for one in own]), 0.99)
    for label in (1, 2):
        assert float(found[label]) == pytest.approx(float(tail * own[label].median()))
    assert float(found[3]) == pytest.approx(float(tail * torch.cat(own).median()))  # no image of it
    assert usual_distances(distances[:0], labels[:0], owners, 2).isnan().all()

from __future__ import annotations

import torch

from protopfaith.training.resemblance import close_share, signs_of_leakage


def features(count: int, seed: int) -> torch.Tensor:
    return torch.randn(count, 32, generator=torch.Generator().manual_seed(seed))


def test_independent_images_are_no_reason_to_warn() -> None:
    assert signs_of_leakage(features(400, 0), features(100, 1)) == []


def test_near_copies_are() -> None:
    train, validation = features(400, 0), features(100, 1)
    train[:20] = validation[:20] + 0.1 * features(20, 2)
    assert close_share(train, validation) == 0.2
    (sentence,) = signs_of_leakage(train, validation)
    assert sentence.startswith("20% of the validation images")


def test_patients_with_several_images_are_noticed_unless_they_stay_together() -> None:
    """Three images of each patient, dealt image by image or patient by patient."""
    images = features(150, 3).repeat_interleave(3, dim=0) + 0.15 * features(450, 4)
    dealt = torch.arange(450) % 5 == 0
    assert signs_of_leakage(images[~dealt], images[dealt])
    together = torch.arange(450) // 3 % 5 == 0
    assert not signs_of_leakage(images[~together], images[together])


def test_too_few_to_tell() -> None:
    assert close_share(features(4, 0), features(1, 0)) == 0
    assert close_share(features(0, 0), features(3, 0)) == 0

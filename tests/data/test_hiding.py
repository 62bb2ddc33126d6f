from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from protopfaith.data.hiding import Hiding, hide, hide_share, with_copies
from protopfaith.errors import ProtoPFaithError
from protopfaith.training.recipe import load_recipe


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_nothing_is_hidden_by_default() -> None:
    images = torch.rand(3, 3, 20, 24)
    assert hide(images, Hiding(), generator()) is images


@pytest.mark.parametrize("baseline", ["zero", "blur", "color"])
@pytest.mark.parametrize("size", [(40, 56), (7, 9)])
def test_about_half_of_a_share_of_the_images_is_hidden(baseline, size) -> None:
    images = 5 + torch.rand(400, 2, *size, generator=generator(1))
    hidden = hide(images, Hiding(share=0.5, baseline=baseline, smallest=2, largest=4), generator())
    changed = (hidden != images).any(dim=1)
    assert 0.4 < float(changed.any((1, 2)).float().mean()) < 0.6
    touched = changed[changed.any((1, 2))].float().mean((1, 2))
    assert 0.4 < float(touched.mean()) < 0.65
    assert float(touched.std()) > 0.2  # a random share of each
    if baseline == "zero":
        assert not hidden[changed[:, None].expand_as(hidden)].any()
    assert torch.equal(hide(images, Hiding(0.5, 2, 4, baseline), generator()), hidden)


@pytest.mark.parametrize("side", [1, 5, 16])
def test_regions_are_windows_of_the_side(side) -> None:
    """Within an image, what is hidden is a union of cells of one grid, wherever it begins."""
    images = torch.ones(30, 1, 48, 48)
    hidden = hide(images, Hiding(share=1.0, smallest=side, largest=side), generator())[:, 0]
    for image in hidden:
        fits = [
            all(cell.min() == cell.max() for row in rows for cell in row.split(_cuts(48, side, x), dim=1))
            for y in range(side)
            for rows in [image.split(_cuts(48, side, y), dim=0)]
            for x in range(side)
        ]
        assert any(fits)


def _cuts(size: int, side: int, first: int) -> list[int]:
    cuts = [first] * (first > 0)
    while sum(cuts) < size:
        cuts.append(min(side, size - sum(cuts)))
    return cuts


@pytest.mark.parametrize(("share", "copies"), [(0.01, 1), (0.4, 4), (1.0, 10)])
def test_copies_are_what_hiding_makes_of_the_first_images_which_stay(share, copies) -> None:
    images = torch.rand(10, 3, 20, 24, generator=generator(1))
    both = with_copies(images, Hiding(share=share, smallest=4, largest=8), generator())
    assert torch.equal(both[:10], images)
    hidden = hide(images[:copies], Hiding(share=1.0, smallest=4, largest=8), generator())
    assert torch.equal(both[10:], hidden)
    assert not torch.equal(hidden, images[:copies])


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_a_share_is_a_share(share) -> None:
    hidden = hide_share(torch.ones(5, 3, 32, 32), share, 4, generator())
    assert hidden.mean((1, 2, 3)).tolist() == [1 - share] * 5
    assert hide_share(torch.ones(2, 3, 30, 27), share, 4, generator()).shape == (2, 3, 30, 27)


def test_recipes_say_it() -> None:
    recipe = load_recipe("birds", ["augmentation.hide.share=0.5", "augmentation.hide.stages=plain"])
    assert recipe.augmentation.hide == replace(Hiding(), share=0.5, stages="plain")
    with pytest.raises(ProtoPFaithError, match="at most 1"):
        load_recipe("birds", ["augmentation.hide.share=2"])
    with pytest.raises(ProtoPFaithError, match=r"hide\.baseline"):
        load_recipe("birds", ["augmentation.hide.baseline=nothing"])

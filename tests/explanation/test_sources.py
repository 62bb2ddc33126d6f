"""Source images: found by path and content, explained once."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from protopfaith.data import ImageSet
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer, Settings, explain, load_explanation
from protopfaith.network import load, save
from protopfaith.training import Run

QUICK = Settings(players=24, budget=96)


def test_sources_are_explained_once(run: Run) -> None:
    plan = replace(QUICK, seed=123)
    first = Explainer(run)
    assert not first.sources.known([0, 1], plan)
    one = first.sources.explain([0, 1], plan)
    assert first.sources.known([0, 1], plan)
    again = Explainer(run)
    calls = []
    again.model.register_forward_pre_hook(lambda *_: calls.append(1))
    again.model.encoder.register_forward_pre_hook(lambda _, inputs: calls.append(len(inputs[0])))
    two = again.sources.explain([0, 1], plan)
    assert sum(calls) <= 2  # only ProtoPNet's own maps: one forward pass per source image
    for prototype in (0, 1):
        assert torch.equal(one[prototype].regions.values, two[prototype].regions.values)
    assert not again.sources.known([0, 1], replace(plan, seed=124))


def test_other_weights_have_another_cache(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run.folder, folder)
    before = Explainer(folder)
    before.sources.explain([0], QUICK)
    model, metadata = load(folder / "model.safetensors")
    with torch.no_grad():
        model.encoder.state_dict()[next(iter(model.encoder.state_dict()))].mul_(1.5)
    save(model, folder / "model.safetensors", metadata)
    after = Explainer(folder)
    assert after.weights_hash != before.weights_hash
    assert not after.sources.known([0], QUICK)


def test_a_source_is_at_distance_zero(explainer: Explainer) -> None:
    side = explainer.sources.explain([2], QUICK)[2]
    x = explainer.preprocessing.normalize(side.pixels)  # type: ignore[union-attr]
    with torch.no_grad():
        assert float(explainer.model.distances(x[None])[0, 2]) == pytest.approx(0, abs=1e-4)


def copies(explainer: Explainer) -> ImageSet:
    """The training images in memory."""
    train = explainer.images.sets[0]  # type: ignore[union-attr]
    return ImageSet(train.uint8().numpy(), train.records, train.classes)


def changed(images: ImageSet, **record: str) -> ImageSet:
    records = [replace(old, **record) if old == images.records[5] else old for old in images.records]
    return ImageSet(images.pixels, records, images.classes)


def with_source(explainer: Explainer, images: ImageSet, shown: ImageSet) -> Explainer:
    """An explainer whose prototype 0 comes from image 5 of `images`, and that finds `shown`."""
    made = Explainer(explainer.model, preprocessing=explainer.preprocessing, images=shown)
    source = replace(explainer.sources.source(0), image=images.paths[5], sha256=images.sha256(5))
    made.sources.source = lambda prototype: source  # type: ignore[method-assign]
    return made


def test_moved_images_are_found_by_content(explainer: Explainer, caplog: pytest.LogCaptureFixture) -> None:
    images = copies(explainer)
    moved = with_source(explainer, images, changed(images, path="elsewhere/bird.png"))
    assert moved.sources.explain([0], QUICK)[0].path == "elsewhere/bird.png"
    assert "is now at elsewhere/bird.png" in caplog.text


def test_changed_and_missing_images_are_one_clear_error(explainer: Explainer) -> None:
    images = copies(explainer)
    with pytest.raises(ProtoPFaithError, match=r"source image .* has changed since training \(its SHA-256"):
        with_source(explainer, images, changed(images, sha256="0" * 64)).sources.explain([0], QUICK)
    gone = images.subset([i for i in range(len(images)) if i != 5])
    with pytest.raises(ProtoPFaithError, match="is not among the images any more"):
        with_source(explainer, images, gone).sources.explain([0], QUICK)


def test_an_unrelated_image_may_change(run: Run, explainer: Explainer) -> None:
    images = copies(explainer)
    used = {explainer.sources.source(p).image for p in range(len(explainer.model.prototypes))}
    free = next(i for i, path in enumerate(images.paths) if path not in used)
    rest = images.subset([i for i in range(len(images)) if i != free])
    made = Explainer(explainer.model, preprocessing=explainer.preprocessing, images=rest)
    assert set(made.sources.explain([0], QUICK)) == {0}


def test_runs_without_a_model(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("recipe.yaml", "environment.json"):
        shutil.copy(run.folder / name, folder)
    with pytest.raises(ProtoPFaithError, match="has no model yet"):
        explain(folder, torch.rand(3, 48, 48))
    with pytest.raises(ProtoPFaithError, match="is no run folder"):
        Explainer(tmp_path)


def test_a_network_in_training_mode_is_not_changed(explainer: Explainer) -> None:
    model = explainer.model.train()
    try:
        assert not Explainer(model).model.training
        assert model.training
    finally:
        model.eval()


def test_superpixels_differ_between_images(explainer: Explainer) -> None:
    sides = explainer.sources.explain([0, 2], replace(QUICK, players="superpixels:5"))
    assert not np.array_equal(sides[0].regions.players.labels, sides[2].regions.players.labels)


def test_parts_of_sources_are_shown_without_a_game(
    explainer: Explainer, pixels: torch.Tensor, tmp_path: Path
) -> None:
    quick = replace(QUICK, budget=48).made_quick()
    found = explainer.explain(pixels, settings=quick)
    for one in found.evidence:
        assert one.source_side is None
        assert one.on_source is one.source_part
        assert one.source_part is not None
        side = explainer.sources.explain([one.prototype], QUICK)[one.prototype]
        assert (one.source_part.path, one.source_part.box) == (side.path, side.box)
        assert torch.equal(one.source_part.pixels, side.pixels)
    path, _ = found.save(tmp_path / "quick")
    again = load_explanation(path).evidence[0].source_part
    assert again is not None
    assert again.box == found.evidence[0].source_part.box  # type: ignore[union-attr]


def test_who_wants_no_sources_gets_no_parts_of_them(explainer: Explainer, pixels: torch.Tensor) -> None:
    private = replace(QUICK, budget=48, sources=False).made_quick()
    assert all(one.on_source is None for one in explainer.explain(pixels, settings=private).evidence)
    alone = Explainer(explainer.model, preprocessing=explainer.preprocessing)
    found = alone.explain(pixels, settings=replace(QUICK, budget=48).made_quick())  # knows no images
    assert all(one.on_source is None for one in found.evidence)

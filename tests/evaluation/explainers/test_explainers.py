"""Every explainer keeps the same promises, and the right one is right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.explainers import EXPLAINERS, Options, default_explainers, density
from protopfaith.evaluation.metrics.removal import aopc, region_sums, removal_curves, removal_ranks
from protopfaith.evaluation.metrics.truth import compare_with_truth
from protopfaith.network import ProtoPNet
from protopfaith.shapley import Players

EVERY = sorted(EXPLAINERS)
DRAWN = ("ours", "owen", "reversed", "random")  # where a draw may depend on all outputs
SHARES = ("ours", "owen", "dasp", "moment_path", "integrated_gradients", "gradient_shap")


@pytest.fixture(scope="module")
def found(model, image, options):
    """Prototypes 0 (of this image) and 2 by every explainer."""
    return {name: EXPLAINERS[name](model, image, [0, 2], options) for name in EVERY}


@pytest.mark.parametrize("name", EVERY)
def test_maps_have_the_promised_form(found, image, players, name) -> None:
    explained = found[name]
    assert explained.maps.shape == (2, *image.shape[1:])
    assert explained.maps.dtype == torch.float64
    assert bool(explained.maps.isfinite().all())
    assert explained.values(players).shape == explained.standard_errors(players).shape == (2, len(players))


@pytest.mark.parametrize("name", EVERY)
def test_the_same_seed_gives_the_same_map_and_the_global_generators_stay(
    found, model, image, options, name
) -> None:
    before = torch.get_rng_state()
    again = EXPLAINERS[name](model, image, [0, 2], options)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.allclose(again.maps, found[name].maps, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in EVERY if name not in DRAWN])
def test_a_prototype_gets_the_same_map_alone(found, model, image, options, name) -> None:
    alone = EXPLAINERS[name](model, image, [2], options)
    assert torch.allclose(alone.maps[0], found[name].maps[1], rtol=1e-3, atol=1e-5)


@pytest.fixture(scope="module")
def known():
    """A network whose game has known values, its image, and what they are.

    One latent position with one channel, z = sum of c_i over the players present, c_i > 0, and a prototype
    that is z of the whole image: s = (sum of c_i over the absent)^2. Player i's value is -c_i * (sum of c).
    """
    size, players = 12, Players.windows((12, 12), 3)
    generator = torch.Generator().manual_seed(0)
    image = torch.rand(3, size, size, generator=generator) + 0.1
    encoder = nn.Conv2d(3, 1, size, bias=False)
    model = ProtoPNet(encoder, 2, prototypes_per_class=1, prototype_channels=1).eval()
    with torch.no_grad():
        importance = density(torch.rand(len(players), generator=generator) ** 3, players)
        encoder.weight.copy_(importance / image)
        encoder.weight.mul_(0.9 / (encoder.weight[0] * image).sum())
        for layer in (model.features[0], model.features[2]):  # ReLU and ReLU1 change nothing in [0, 1]
            layer.weight.fill_(1)
            layer.bias.fill_(0)
        model.prototypes.copy_(torch.tensor([[0.9], [0.0]]))
        pieces = region_sums((encoder.weight[0] * image).sum(0).double(), players)
    options = Options(players, budget=512, nodes=16, path_steps=32, samples=64, sizes=16)
    return model, image, options, pieces * pieces.sum()


@pytest.mark.parametrize("name", SHARES)
def test_known_values_are_found(known, name) -> None:
    model, image, options, values = known
    explained = EXPLAINERS[name](model, image, [0], options)
    assert explained.shares
    loose = {"gradient_shap": 0.4, "owen": 0.25}.get(name, 0.1)  # those that draw few or clumsily
    assert float(compare_with_truth(explained.values(options.players), values[None]).relative_error) < loose


def test_the_perfect_explainer_is_best_and_its_reverse_worst(known) -> None:
    model, image, options, values = known

    def score(map: torch.Tensor) -> float:
        ranks = removal_ranks(map, options.players, torch.Generator().manual_seed(0))[None]
        zero = torch.zeros_like(image)[None]
        curves = removal_curves(model.distances, image[None], ranks, torch.tensor([0]), zero, steps=16)
        return float(aopc(curves))

    perfect = score(density(values, options.players))
    scores = {name: score(EXPLAINERS[name](model, image, [0], options).maps[0]) for name in EVERY}
    assert perfect <= min(scores.values()) + 1e-6
    assert max(scores, key=scores.get) == "reversed"
    for name in ("random", "protopnet", "protopnet_crop", "reversed"):
        assert perfect < scores[name] - 0.02


def test_what_is_for_tests_only_is_not_run_by_default() -> None:
    assert set(EXPLAINERS) - set(default_explainers()) == {"reversed"}


def test_unknown_names_are_told() -> None:
    with pytest.raises(ProtoPFaithError, match="did you mean 'saliency'"):
        EXPLAINERS["salience"]


def test_the_explainer_of_the_docs_works(model, image, options, players) -> None:
    text = (Path(__file__).parents[3] / "docs/faithfulness.md").read_text(encoding="utf-8")
    (example,) = (code for code in re.findall(r"``python\n(.*?)``", text, re.DOTALL) if "register" in code)
    try:
        exec(compile(example, "docs/faithfulness.md", "exec"), {})
        maps = EXPLAINERS["occlusion"](model, image, [0, 2], options).values(players)
    finally:
        EXPLAINERS.pop("occlusion", None)
    without = image.clone()
    without[:, :6, :6] = 0
    rise = (model.distances(without[None]) - model.distances(image[None]))[0, [0, 2]]
    assert torch.allclose(maps[:, 0], rise.double(), atol=1e-5)

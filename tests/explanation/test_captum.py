"""Ours behind the interface of Captum, tested with Captum and Quantus themselves."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer, ShapleyAttribution, quantus_explainer
from protopfaith.shapley import Players
from protopfaith.show import ShownAttribution


def test_it_agrees_with_captum(explainer: Explainer) -> None:
    """Captum's own Shapley values, which go through all orders of four players."""
    captum = pytest.importorskip("captum.attr")
    model, x = explainer.model, torch.randn(2, 3, 48, 48)
    players = Players.windows((48, 48), 24)
    ours = ShapleyAttribution(model, players, estimator="exact").attribute(x, target=2)
    theirs = captum.ShapleyValues(model)
    with torch.no_grad():
        expected = theirs.attribute(x, target=2, feature_mask=players.labels.repeat(1, 3, 1, 1))
    per_player = expected / (24 * 24 * 3)  # Captum paints a region's whole value on each of its pixels
    assert torch.allclose(ours, per_player.to(ours), atol=1e-6)


def test_it_takes_the_place_of_a_captum_method(explainer: Explainer) -> None:
    """Code written for Captum's classes runs with ours."""
    captum = pytest.importorskip("captum.attr")
    x, baseline = torch.randn(2, 3, 48, 48), torch.ones(2, 3, 48, 48)

    def use(method: object) -> tuple[torch.Tensor, torch.Tensor]:
        return method.attribute(  # type: ignore[attr-defined]
            x, baselines=baseline, target=torch.tensor([0, 3]), return_convergence_delta=True
        )

    values, delta = use(ShapleyAttribution(explainer.model, players=24, estimator="exact"))
    other, other_delta = use(captum.IntegratedGradients(explainer.model))
    assert values.shape == other.shape == x.shape
    assert delta.shape == other_delta.shape
    assert float(delta.abs().max()) < 1e-3
    with torch.no_grad():
        total = (explainer.model(x) - explainer.model(baseline)).gather(1, torch.tensor([[0], [3]]))[:, 0]
    assert torch.allclose(values.flatten(1).sum(1), total, atol=1e-3)


def test_quantus_measures_it(explainer: Explainer) -> None:
    """Removing what we call important lowers the output; removing the opposite does not."""
    quantus = pytest.importorskip("quantus")
    images = explainer.images.sets[2].uint8()[:4]  # type: ignore[union-attr]
    x = explainer.preprocessing.normalize(images)  # type: ignore[union-attr]
    with torch.no_grad():
        y = explainer.model(x).argmax(1)

    def score(explain: Callable[..., np.ndarray]) -> float:
        metric = quantus.PixelFlipping(features_in_step=768, perturb_baseline=0.0, disable_warnings=True)
        found = metric(
            model=explainer.model,
            x_batch=x.numpy(),
            y_batch=y.numpy(),
            explain_func=explain,
            explain_func_kwargs={"players": 16, "estimator": "exact"},
            device="cpu",
            softmax=False,
        )
        return float(np.mean(found))  # of the output, while the best regions are removed first

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert score(quantus_explainer) < score(lambda *args, **kwargs: -quantus_explainer(*args, **kwargs))


def test_shapes_baselines_and_targets() -> None:
    x = torch.rand(2, 1, 4, 4)

    def double(images: torch.Tensor, factor: float = 1.0) -> torch.Tensor:
        return factor * torch.stack([images.flatten(1).sum(1), images.flatten(1).sum(1) * 2], 1)

    method = ShapleyAttribution(double, players=2, estimator="exact")
    assert torch.allclose(
        method.attribute(x, target=0),
        x.unfold(2, 2, 2).unfold(3, 2, 2).mean((-1, -2)).repeat_interleave(2, 2).repeat_interleave(2, 3),
        atol=1e-6,
    )
    one = method.attribute(x, baselines=1.0, target=[0, 1], additional_forward_args=3.0)
    assert torch.allclose(
        one.flatten(1).sum(1), 3 * torch.tensor([1.0, 2.0]) * (x.flatten(1).sum(1) - 16), atol=1e-4
    )
    shared = method.attribute(x, baselines=torch.ones(1, 4, 4), target=0)
    assert torch.allclose(shared, method.attribute(x, baselines=torch.ones(1, 1, 4, 4), target=0))
    assert len(method.attributions) == 2
    assert method.has_convergence_delta()
    assert torch.equal(method.attribute(x, target=-1), method.attribute(x, target=1))
    for target in (2, -3, [0, 2]):
        with pytest.raises(ProtoPFaithError, match="give a target from 0 to 1"):
            method.attribute(x, target=target)
    with pytest.raises(ProtoPFaithError, match="say with target"):
        method.attribute(x)
    with pytest.raises(ProtoPFaithError, match="B x C x H x W"):
        method.attribute(x[0], target=0)


def test_channels_may_be_players_of_their_own() -> None:
    x = torch.rand(1, 2, 4, 4)
    players = Players.windows((4, 4), 4, channels=2)
    method = ShapleyAttribution(lambda images: images[:, 0].flatten(1).sum(1), players, estimator="exact")
    found = method.attribute(x)
    assert float(found[0, 1].abs().max()) < 1e-12  # as sums in float64 are rounded
    assert float(found[0, 0].sum()) == pytest.approx(float(x[0, 0].sum()), abs=1e-5)


def test_attributions_show_themselves_in_notebooks() -> None:
    method = ShapleyAttribution(lambda images: images.flatten(1).sum(1), players=2, estimator="exact")
    method.attribute(torch.rand(1, 1, 4, 4))
    shown = ShownAttribution(method.attributions[0], names=["brightness <sum>"])._repr_html_()
    assert "brightness &lt;sum&gt;" in shown
    assert "exact" in shown


def test_a_feature_mask_names_the_players() -> None:
    image = torch.arange(1.0, 17.0).reshape(1, 1, 4, 4)
    mask = torch.tensor([[7, 7, 3, 3]] * 4)
    method = ShapleyAttribution(lambda x: x.flatten(1).sum(1), repeat=True)
    whole = {7: float(image[..., :2].sum()), 3: float(image[..., 2:].sum())}
    for given in (mask, mask[None, None]):
        values = method.attribute(image, feature_mask=given)
        for name, total in whole.items():
            assert torch.allclose(values[0, 0][mask == name], torch.tensor(total))
    spread = ShapleyAttribution(lambda x: x.flatten(1).sum(1)).attribute(image, feature_mask=mask)
    assert float(spread.sum()) == pytest.approx(float(image.sum()))
    _, delta = method.attribute(image, feature_mask=mask, return_convergence_delta=True)
    assert torch.allclose(delta, torch.zeros(1), atol=1e-6)


def test_repeated_values_are_those_of_captum() -> None:
    captum = pytest.importorskip("captum.attr")
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(32, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)
    )
    images = torch.rand(2, 2, 4, 4)
    mask = Players.windows((4, 4), 2).labels.repeat(1, 2, 1, 1)
    theirs = captum.ShapleyValues(network).attribute(images, target=1, feature_mask=mask)
    ours = ShapleyAttribution(network, estimator="exact", repeat=True)
    assert torch.allclose(ours.attribute(images, target=1, feature_mask=mask), theirs, atol=1e-5)


def test_a_feature_mask_of_another_size_is_refused() -> None:
    method = ShapleyAttribution(lambda x: x.flatten(1).sum(1))
    for wrong in (torch.zeros(3, 3).long(), torch.rand(4, 4)):
        with pytest.raises(ProtoPFaithError, match="for each of 4 x 4 pixels"):
            method.attribute(torch.ones(1, 1, 4, 4), feature_mask=wrong)


def test_what_the_function_raises_is_told() -> None:
    def picky(images: torch.Tensor, more: int) -> torch.Tensor:
        raise NotImplementedError

    with pytest.raises(ProtoPFaithError, match=r"TypeError: .*missing 1 required positional argument"):
        ShapleyAttribution(picky, 8).attribute(torch.rand(1, 3, 16, 16), target=0)

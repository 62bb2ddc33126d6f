"""Explainers by gradients, through Captum."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.explainers.common import (
    EXPLAINERS,
    Explainable,
    Explained,
    Options,
    selected_distances,
)
from protopfaith.shapley import make_baseline

AT_ONCE = {"cpu": 16, "gpu": 32}  # images with gradients in memory; activations are kept for the way back


def _captum() -> Any:
    if find_spec("captum") is None:
        raise ProtoPFaithError(
            "Gradient explainers use Captum, which is not installed; run pip install 'protopfaith[compare]', "
            "or leave these explainers out."
        )
    import captum.attr

    return captum.attr


@EXPLAINERS.register("integrated_gradients")
def integrated_gradients(
    model: Explainable, image: Tensor, prototypes: Sequence[int], options: Options
) -> Explained:
    """Gradients averaged on the straight path from the baseline, times its length (Sundararajan, 2017)."""
    attr = _captum()
    function, baseline = selected_distances(model, prototypes), _baseline(image, options)
    method = attr.IntegratedGradients(function, multiply_by_inputs=True)

    def attribute(target: int) -> Tensor:
        return method.attribute(
            image[None],
            baseline,
            target=target,
            n_steps=options.path_steps,
            internal_batch_size=_at_once(image),
        )

    return _shares(attribute, prototypes, options)


@EXPLAINERS.register("gradient_shap")
def gradient_shap(
    model: Explainable, image: Tensor, prototypes: Sequence[int], options: Options
) -> Explained:
    """Gradients at random points of that path (Lundberg and Lee's expected gradients, with one baseline).

    Without noise on the image, which is also Captum's default: shares are of this image's distance, not of
    those of noisy copies.
    """
    attr = _captum()
    method = attr.GradientShap(selected_distances(model, prototypes))
    baseline = _baseline(image, options)

    def attribute(target: int) -> Tensor:
        return method.attribute(image[None], baseline, target=target, n_samples=options.samples, stdevs=0.0)

    return _shares(attribute, prototypes, options)


@EXPLAINERS.register("saliency")
def saliency(model: Explainable, image: Tensor, prototypes: Sequence[int], options: Options) -> Explained:
    """The size of the gradient (Simonyan et al., 2013). At the source image of a prototype the distance is at
    its minimum, zero, and so is its gradient: there nothing but rounding is left of this map."""
    attr = _captum()
    method = attr.Saliency(selected_distances(model, prototypes))
    return _sizes(lambda target: method.attribute(image[None], target=target, abs=False), prototypes, options)


@EXPLAINERS.register("smoothgrad")
def smoothgrad(model: Explainable, image: Tensor, prototypes: Sequence[int], options: Options) -> Explained:
    """The size of the mean gradient over noisy copies of the image (Smilkov et al., 2017)."""
    attr = _captum()
    method = attr.NoiseTunnel(attr.Saliency(selected_distances(model, prototypes)))
    deviation = options.noise * float(image.max() - image.min())

    def attribute(target: int) -> Tensor:
        return method.attribute(
            image[None],
            nt_type="smoothgrad",
            nt_samples=options.samples,
            nt_samples_batch_size=_at_once(image),
            stdevs=deviation,
            target=target,
            abs=False,
        )

    return _sizes(attribute, prototypes, options)


def _at_once(image: Tensor) -> int:
    return AT_ONCE["cpu" if image.device.type == "cpu" else "gpu"]


def _baseline(image: Tensor, options: Options) -> Tensor:
    return make_baseline(options.baseline, image)[0][None]


def _shares(attribute: Callable[[int], Tensor], prototypes: Sequence[int], options: Options) -> Explained:
    """Attributions of the distance, added up over channels, as maps of similarity."""
    return Explained(-_collected(attribute, prototypes, options).sum(1), shares=True)


def _sizes(attribute: Callable[[int], Tensor], prototypes: Sequence[int], options: Options) -> Explained:
    """Gradients without their sign, added up over channels."""
    return Explained(_collected(attribute, prototypes, options).abs().sum(1), shares=False)


def _collected(attribute: Callable[[int], Tensor], prototypes: Sequence[int], options: Options) -> Tensor:
    """(outputs, C, H, W)"""
    found = []
    for target in range(len(prototypes)):
        with _seeded(options.seed), torch.enable_grad():
            found.append(attribute(target)[0].detach().double().cpu())
    return torch.stack(found)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Captum draws from the global generators of torch and NumPy: seeded here, then given back."""
    state = np.random.get_state()
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*did not already require gradients.*")
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)
        try:
            yield
        finally:
            np.random.set_state(state)

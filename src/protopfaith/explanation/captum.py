"""Our Shapley values behind the interface that Captum's users know, and that Quantus calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protopfaith.annotations import check_arguments
from protopfaith.arguments import instance, shown, tensor
from protopfaith.devices import choose_device
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.game import play
from protopfaith.explanation.settings import PlayersLike, Settings
from protopfaith.shapley import Attribution, Players
from protopfaith.shapley.players import as_tensor

Target = int | Tensor | Sequence[int] | None


class ShapleyAttribution:
    """`attribute(inputs, baselines=..., target=...)`, as Captum's attribution classes have it.

    `forward_func` maps a batch of images to `(B, outputs)` or `(B,)`: a network that returns logits, or
    `model.distances` to explain prototypes (`target` then is the prototype). The result has the shape
    of the inputs; a region's value is spread evenly over its pixels and channels, so that the values of an
    image sum to f(image) - f(baseline), as Captum's convergence delta expects.

    Args:
        forward_func: the function to explain.
        players: the regions, see `Settings`.
        estimator: a name of `protopfaith.shapley.ESTIMATORS`.
        budget: evaluations per image at most.
        precision: relative standard error at which to stop.
        seed: of all random choices.
        repeat: give every pixel and channel its region's whole value, as Captum's perturbation methods do,
            instead of an even share of it; sums over pixels then mean nothing.
        settings: further fields of `Settings`.

    >>> attribution = ShapleyAttribution(lambda x: x.flatten(1).sum(1), players=2)
    >>> attribution.attribute(torch.ones(1, 1, 4, 4)).sum().item()
    16.0
    """

    def __init__(
        self,
        forward_func: Callable[..., Tensor],
        players: PlayersLike = 16,
        *,
        estimator: str = "default",
        budget: int | None = None,
        precision: float | None = None,
        seed: int = 0,
        repeat: bool = False,
        **settings: Any,
    ):
        check_arguments(ShapleyAttribution.__init__, locals())
        self.forward_func = forward_func
        self.settings = Settings(players, precision, budget, estimator, seed=seed, **settings)
        self.repeat = repeat
        self.attributions: list[Attribution] = []

    def attribute(  # noqa: PLR0917  (in Captum's order)
        self,
        inputs: Tensor,
        baselines: Tensor | float | str | None = None,
        target: Target = None,
        additional_forward_args: Any = None,
        feature_mask: Tensor | None = None,
        return_convergence_delta: bool = False,
    ) -> Any:
        """Values of the shape of `inputs`, and with `return_convergence_delta` also their deltas (B,).

        What is needed to judge the values (standard errors, gaps) is kept in `self.attributions`, one for
        each input.

        Args:
            inputs: images (B, C, H, W).
            baselines: None or a number, a name such as "blur", one image, or one per input.
            target: the output to explain, one number or one per input; negative ones count from the last.
            additional_forward_args: passed on to the function after the images.
            feature_mask: which player every pixel belongs to, in the place of `players`: whole numbers of
                shape (H, W), (1, C, H, W) or (B, C, H, W), with C or 1 channels.
            return_convergence_delta: also return by how much the values of each image miss their total.
        """
        check_arguments(ShapleyAttribution.attribute, locals())
        if not len(tensor(inputs, "Inputs", "images B x C x H x W", 4)):
            raise ProtoPFaithError("There is no image to explain; give at least one.")
        resolved = self.settings.on(inputs.device, inputs.shape[-2:])
        extra = () if additional_forward_args is None else additional_forward_args
        extra = extra if isinstance(extra, tuple) else (extra,)
        self.attributions = []
        maps = []
        for number, image in enumerate(inputs):
            function = _single_output(self.forward_func, _of(target, number), extra)
            settings = replace(resolved, baseline=_baseline(baselines, number, image))
            if feature_mask is not None:
                settings = replace(settings, players=_players(feature_mask, number, image))
            found = play(function, image, settings)
            self.attributions.append(found)
            maps.append(_spread(found, image, repeat=self.repeat))
        values = torch.stack(maps)
        if not return_convergence_delta:
            return values
        sums = torch.stack([one.values[0].sum() - one.total[0] for one in self.attributions])
        return values, sums.to(values)

    def has_convergence_delta(self) -> bool:
        """Captum asks for this."""
        return True


def quantus_explainer(
    model: Callable[[Tensor], Tensor], inputs: Any, targets: Any, device: Any = None, **options: Any
) -> np.ndarray:
    """Ours as `explain_func` of Quantus.

    Args:
        model: the function to explain.
        inputs: images (B, C, H, W), as an array or a tensor.
        targets: the output to explain of each image.
        device: where to compute.
        options: those of `ShapleyAttribution`, which Quantus takes as `explain_func_kwargs`.

    >>> quantus_explainer(lambda x: x.flatten(1), np.ones((1, 1, 2, 2)), [0], players=1).shape
    (1, 1, 2, 2)
    """
    images = as_tensor(inputs, "Inputs", "images B x C x H x W").float()
    images = images if device is None else images.to(choose_device(device))
    wanted = as_tensor(targets, "Targets", "numbers of outputs").reshape(-1)
    options = {
        k: v for k, v in options.items() if k not in ("model", "inputs", "targets", "method", "xai_lib")
    }
    values = ShapleyAttribution(model, **options).attribute(images, target=wanted)
    return values.detach().cpu().numpy()


def _single_output(
    function: Callable[..., Tensor], target: int | None, extra: tuple
) -> Callable[[Tensor], Tensor]:
    def chosen(images: Tensor) -> Tensor:
        outputs = function(images, *extra)
        if not hasattr(outputs, "dim"):  # moment propagation has a kind of tensor of its own
            instance(outputs, Tensor, "What the function returns", "a tensor of numbers")
        if outputs.dim() == 1:
            return outputs[:, None]
        if target is None:
            if outputs.shape[1] != 1:
                raise ProtoPFaithError(
                    f"The function has {outputs.shape[1]} outputs; say with target=... which one to explain."
                )
            return outputs
        place = _place(target, outputs.shape[1])
        return outputs[:, place : place + 1]

    return chosen


def _place(target: int, count: int) -> int:
    """The number of an output; negative ones count from the last, as they do in Captum."""
    if not -count <= target < count:
        raise ProtoPFaithError(
            f"The function has {count} outputs and none of number {target}; give a target from 0 to "
            f"{count - 1}."
        )
    return target % count


def _of(target: Target, number: int) -> int | None:
    if target is None or isinstance(target, int):
        return target
    flat = as_tensor(target, "The target", "the number of an output, or one for each image").reshape(-1)
    if not len(flat) or flat.is_floating_point() or (1 < len(flat) <= number):
        raise ProtoPFaithError(
            f"The target must be the number of an output, or one for each image, not {shown(target)}."
        )
    return int(flat[number] if len(flat) > 1 else flat[0])


def _baseline(baselines: Tensor | float | str | None, number: int, image: Tensor) -> Any:
    if baselines is None:
        return "zero"
    if not isinstance(baselines, Tensor) or baselines.dim() < 3:
        return baselines
    tensor(baselines, "Baselines", "B x C x H x W", 3, 4)
    chosen = baselines if baselines.dim() == 3 else baselines[number if len(baselines) > 1 else 0]
    return chosen.expand_as(image)


def _players(feature_mask: Tensor, number: int, image: Tensor) -> Players:
    """Captum's feature mask of one image; its numbers need not be consecutive."""
    mask = tensor(feature_mask, "A feature mask", "B x C x H x W", 2, 3, 4)
    if mask.dim() == 4:
        mask = mask[number if len(mask) > 1 else 0]
    if mask.dim() == 3 and len(mask) == 1:
        mask = mask[0]
    if mask.is_floating_point() or tuple(mask.shape[-2:]) != tuple(image.shape[-2:]):
        raise ProtoPFaithError(
            f"A feature mask has a whole number for each of {image.shape[-2]} x {image.shape[-1]} pixels; "
            f"this is {mask.dtype} of shape {tuple(feature_mask.shape)}."
        )
    return Players.from_labels(mask.unique(return_inverse=True)[1])


def _spread(found: Attribution, image: Tensor, *, repeat: bool) -> Tensor:
    """A region's value divided among its pixels and channels, or repeated on all of them."""
    labels = found.players.labels
    apart = labels.dim() == 3
    sizes = found.players.sizes * (1 if apart else len(image))
    values = found.values[0] if repeat else found.values[0] / sizes
    return values[labels].expand_as(image).to(image)

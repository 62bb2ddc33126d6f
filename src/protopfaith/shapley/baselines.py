"""Baselines: what stands in an image where a player is absent.

A baseline is a function from the image `C x H x W` (and options) to an image of the same shape,
registered by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from protopfaith.arguments import finite_number, instance, odd_kind, plain_tensor, shown, tensor
from protopfaith.errors import ProtoPFaithError
from protopfaith.registry import Registry, borrowed
from protopfaith.specs import baseline_numbers

LARGEST_BLUR = 10_000
BASELINES: Registry[Callable[..., Tensor]] = Registry("baseline")


@BASELINES.register("zero")
def zero(image: Tensor) -> Tensor:
    """Zero after normalization: the color that the preprocessing subtracts."""
    return torch.zeros_like(image)


@BASELINES.register("color")
def color(image: Tensor, value: float | Sequence[float] | Tensor = 0.0) -> Tensor:
    """One color everywhere: a number, or a number per channel, in the image's own (normalized) units."""
    given, value = value, _numbers(value, "color").to(image).reshape(-1)
    if not image.is_floating_point() and bool((torch.as_tensor(given).to(value.device) != value).any()):
        raise ProtoPFaithError(
            f"The baseline color {shown(given)} cannot be had in an image of whole numbers ({image.dtype}); "
            "convert the image with .float()."
        )
    if not bool(value.isfinite().all()):
        raise ProtoPFaithError("The baseline color has numbers that are not finite; give others.")
    if len(value) not in (1, image.shape[0]):
        raise ProtoPFaithError(
            f"The baseline color has {len(value)} numbers, but the image has {image.shape[0]} channels; "
            "give one number, or one per channel."
        )
    return value[:, None, None].expand_as(image).contiguous()


@BASELINES.register("mean")
def mean(image: Tensor, value: float | Sequence[float] | Tensor | None = None) -> Tensor:
    """The data set's mean: `value` is the mean image, or its mean color, in normalized units."""
    if value is None:
        raise ProtoPFaithError(
            "The baseline 'mean' needs the data set's mean; give its color as in mean:0.1,0.2,0.3 (a game "
            "also takes baseline_options={'value': ...}), or use 'zero' where images are normalized by it."
        )
    value = _numbers(value, "mean")
    return given(image, value) if value.dim() == 3 else color(image, value)


@BASELINES.register("blur")
def blur(image: Tensor, sigma: float | None = None) -> Tensor:
    """The image itself, blurred by a Gaussian of `sigma` pixels (a tenth of the shorter side by
    default).
    """
    from torchvision.transforms.v2.functional import gaussian_blur

    height, width = image.shape[-2:]
    sigma = finite_number(0.1 * min(height, width) if sigma is None else sigma, "The sigma of a blur")
    if not 0 < sigma <= LARGEST_BLUR:
        raise ProtoPFaithError(
            f"The blur baseline needs a sigma above zero and up to {LARGEST_BLUR:,} pixels, not {sigma}."
        )
    # Reflection needs a radius below the side; three sigma is all of the Gaussian that float32 notices.
    sides = [2 * min(int(3 * sigma + 0.5) or 1, side - 1) + 1 for side in (width, height)]
    return gaussian_blur(image, sides, [sigma, sigma])


@BASELINES.register("image")
def given(image: Tensor, value: Tensor | None = None) -> Tensor:
    """An image that you give."""
    if value is None:
        raise ProtoPFaithError(
            "The baseline 'image' is one that a program gives, in Python as baseline=TENSOR; name another, "
            "such as zero or blur."
        )
    if value.shape != image.shape:
        raise ProtoPFaithError(
            f"The baseline image has shape {tuple(value.shape)}, but the image has {tuple(image.shape)}; "
            "give one of equal shape."
        )
    if not bool(value.isfinite().all()):
        raise ProtoPFaithError("The baseline image has numbers that are not finite; give others.")
    return value.to(image)


def _numbers(value: object, name: str) -> Tensor:
    try:
        found = torch.as_tensor(value)
        return plain_tensor(found, f"The value of the baseline {name!r}", "numbers")
    except (TypeError, ValueError, RuntimeError):
        raise ProtoPFaithError(
            f"The value of the baseline {name!r} must be a number, one per channel or an image, not "
            f"{shown(value)}."
        ) from None


def check_options(name: str, options: Mapping[str, object]) -> None:
    """Raises if a named baseline has no option of a name.

    Args:
        name: of `BASELINES`
        options: what is given to it
    """
    _, *takes = inspect.signature(BASELINES[name]).parameters.values()
    known = [one.name for one in takes if one.kind is not one.VAR_KEYWORD]
    unknown = [option for option in options if option not in known]
    if unknown and len(known) == len(takes):
        raise ProtoPFaithError(
            f"The baseline {name!r} has no option {shown(unknown[0])}; it takes {', '.join(known) or 'none'}."
        )


def make_baseline(
    spec: str | float | Sequence[float] | Tensor, image: Tensor, **options: object
) -> tuple[Tensor, str]:
    """The baseline image and a description of it.

    Args:
        spec: a name of `BASELINES`, a name with its one argument (`"blur:8"`, `"color:0,0.5,1"`), a color (a
            number or one per channel), or an image `C x H x W`.
        image: the image `C x H x W` that it stands in for.
        options: options of a named baseline.

    >>> baseline, description = make_baseline("color:0.5", torch.zeros(3, 2, 2))
    >>> baseline.unique().tolist(), description
    ([0.5], 'color (value 0.5)')
    """
    tensor(image, "The image of a baseline", "C x height x width", 3)
    if isinstance(spec, str):
        name, colon, argument = spec.partition(":")
        if colon:
            options = {**options, **_argument(name, argument)}
        check_options(name, options)
        with borrowed(f"The baseline {name!r}", BASELINES[name]):
            found = BASELINES[name](image, **options)
        what = f"What the baseline {name!r} gives"
        return instance(found, Tensor, what, "an image").detach(), _describe(name, options)
    if options:
        raise ProtoPFaithError(
            f"Options such as {next(iter(options))!r} are for a baseline that is named, not for "
            f"{shown(spec)}; leave them out."
        )
    try:
        if isinstance(spec, bool):
            raise TypeError
        value = torch.as_tensor(spec)
        if odd_kind(value) or value.dim() not in (0, 1, 3) or value.numel() > max(image.numel(), 10_000):
            raise ValueError
    except (TypeError, ValueError, RuntimeError) as error:
        raise ProtoPFaithError(
            f"A baseline is a name, a color or an image, not {shown(spec)}; see "
            "protopfaith.shapley.BASELINES."
        ) from error
    name = "image" if value.dim() == 3 else "color"
    return BASELINES[name](image, value=value).detach(), _describe(name, {"value": value})


def _argument(name: str, text: str) -> dict[str, object]:
    option = "sigma" if name == "blur" else "value"
    if option not in inspect.signature(BASELINES[name]).parameters:
        raise ProtoPFaithError(f"The baseline {name!r} takes no numbers; write {name}, not {name}:{text}.")
    numbers = baseline_numbers(f"{name}:{text}")
    if option == "value":
        return {option: numbers}
    if len(numbers) > 1:
        raise ProtoPFaithError(
            f"The baseline {name}:{text} has {len(numbers)} numbers; give one, as in blur:8."
        )
    return {option: numbers[0]}


def _describe(name: str, options: dict) -> str:
    parts = []
    for key, value in options.items():
        if value is None:
            continue
        numbers = torch.as_tensor(value)
        told = "given" if numbers.numel() > 4 else ", ".join(f"{v:g}" for v in numbers.reshape(-1).tolist())
        parts.append(f"{key} {told}")
    return f"{name} ({'; '.join(parts)})" if parts else name

"""Whatever a function of images returns, as one row of numbers for each image."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from protopfaith.arguments import odd_kind, shown, some_of, type_name
from protopfaith.data.images import say_once
from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley.game import asked, check_outputs
from protopfaith.shapley.memory import Batches

LOGITS = ("logits", "logits_per_image", "out", "output", "prediction", "predictions", "scores")
MOST = 1 << 24  # outputs for an image, of which only those that are explained are kept
ONE_BY_ONE = "The function takes one image at a time, so it is asked image by image; batches would be faster."


class FunctionOutputs:
    """A function whose answers are always a tensor (B, outputs) of as many rows as there are images.

    A function that takes one image alone is asked image by image.

    Args:
        function: from images (B, C, H, W) to numbers

    >>> outputs = FunctionOutputs(lambda images: {"logits": images.mean((1, 2, 3)).tolist()})
    >>> outputs(torch.ones(2, 3, 4, 4)).tolist()
    [[1.0], [1.0]]
    """

    def __init__(self, function: Callable[[Tensor], Any]):
        self.function, self.alone = function, False
        self._outputs: int | None = None

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        if not isinstance(images, Tensor):
            raise ProtoPFaithError(
                "Estimators that propagate moments look into a network's layers, which a function does not "
                "show; take one that samples, such as the default."
            )
        if self.alone or len(images) == 1:
            return self._one_by_one(images)
        try:
            return self._asked(images)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            try:
                rows = self._one_by_one(images)
            except Exception:
                raise error from None
            self.alone = True
            say_once(ONE_BY_ONE)
            return rows

    def _one_by_one(self, images: Tensor) -> Tensor:
        # Of a single image, memory that runs out is told in a sentence.
        return torch.cat([one for _, one in Batches(1)(self._asked, images)])

    def _asked(self, images: Tensor) -> Tensor:
        # One image may be the very tensor that is explained, and a function may change what it gets.
        found = asked(self.function, images.clone() if len(images) == 1 else images)
        rows = as_rows(found, len(images))
        if rows is None:
            numbers = _numbers(found)
            what = f"{described(found if numbers is None else numbers)} for {len(images)} images"
            wrapped = _of_a_map(found) if numbers is not None and numbers.dim() == 4 else ""
            raise ProtoPFaithError(
                f"The function gives {what}; it should give one number or one row of numbers for "
                f"each{wrapped}."
            )
        check_outputs(rows.shape[1], MOST)
        if self._outputs not in (None, rows.shape[1]):
            raise ProtoPFaithError(
                f"The function gives {rows.shape[1]} numbers for an image, but {self._outputs} before; it "
                "should give as many at every call."
            )
        self._outputs = rows.shape[1]
        return rows


def as_rows(found: Any, count: int) -> Tensor | None:
    """Numbers as a tensor (count, outputs); None where they are no such thing.

    Args:
        found: what a function gave: a tensor, an array, lists of numbers, or a tuple, a list, a dictionary or
            an object with attributes of these, of which the logits count, or else the first that is not
            called a loss
        count: of the images

    >>> as_rows((torch.zeros(2, 3), torch.zeros(2, 5)), 2).shape
    torch.Size([2, 3])
    >>> as_rows([[1.0, 2.0], [3.0, 4.0]], 2).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    rows = _numbers(found)
    if rows is None or not rows.numel():
        return None
    while rows.dim() > 2 and rows.shape[-1] == 1:  # maps of one position
        rows = rows[..., 0]
    if rows.dim() == 1 and count == 1 and len(rows) != 1:
        rows = rows[None]  # a function of one image gives one row
    if rows.dim() == 0 and count == 1:
        rows = rows[None]
    if rows.dim() not in (1, 2) or len(rows) != count:
        return None
    return rows[:, None] if rows.dim() == 1 else rows


def _of_a_map(found: Any) -> str:
    """How a function that gives a map for each image becomes one of numbers."""
    taken = "function(x)" if isinstance(found, Tensor | np.ndarray) else "function(x)[...]"
    return f": of a map take the mean or a place, such as lambda x: {taken}.mean((2, 3))"


def _numbers(found: Any) -> Tensor | None:
    """The first numbers in what a function gave, as a tensor of floats."""
    if isinstance(found, Tensor):
        if odd_kind(found):
            return None
        return found if found.is_floating_point() else None if found.is_complex() else found.float()
    if isinstance(found, np.ndarray | np.generic | float | int):
        return _from_array(found)
    if isinstance(found, Mapping):
        return _of_named(found)
    if isinstance(found, list | tuple) and found:
        return _first_of(found) if isinstance(found[0], Tensor | np.ndarray) else _from_array(found)
    logits = getattr(found, "logits", None)  # as objects of the transformers library have them
    return _of_named(_attributes(found)) if logits is None else _numbers(logits)


def _first_of(results: Sequence[Any]) -> Tensor | None:
    if len(results) > 1:
        say_once(f"The function gives {len(results)} results, of which the first is explained.")
    return _numbers(results[0])


def _of_named(results: Mapping[Any, Any]) -> Tensor | None:
    """The logits among results with names, or else the first."""
    named = [key for key in LOGITS if key in results]
    others = [key for key in results if "loss" not in str(key).lower()]  # that of the batch
    if not (named or others):
        return None
    if not named and len(others) > 1:
        say_once(
            f"The function gives {some_of(map(str, others))}, of which {shown(others[0])} is explained; have "
            "it give another one alone, or call that logits."
        )
    return _numbers(results[[*named, *others][0]])


def _attributes(found: Any) -> dict[str, Any]:
    """Those of an object that hold results."""
    known = getattr(found, "__dict__", {})
    return {name: value for name, value in known.items() if isinstance(value, Tensor | np.ndarray | list)}


def _from_array(found: Any) -> Tensor | None:
    if np.ma.is_masked(found):  # some numbers are said to be none
        return None
    try:
        array = np.asarray(found)
    except ValueError:  # rows of different lengths
        return None
    return torch.from_numpy(array.astype(np.float64)) if array.dtype.kind in "fiub" else None


def described(found: object) -> str:
    """What was given, in a few words."""
    if isinstance(found, Tensor) and odd_kind(found):
        return f"a tensor that is {odd_kind(found)}"
    if isinstance(found, Tensor | np.ndarray):
        kind = "a tensor" if isinstance(found, Tensor) else "an array"
        return f"{kind} of shape {tuple(found.shape)} ({type_name(found)})"
    return shown(found)


def first_channels(network: nn.Module) -> int | None:
    """The channels of the images that a network takes, by its first convolution; None where it has none.

    >>> first_channels(nn.Sequential(nn.Conv2d(1, 8, 3)))
    1
    """
    layers = (layer for layer in network.modules() if isinstance(layer, nn.Conv2d))
    first = next(layers, None)
    return None if first is None else first.in_channels

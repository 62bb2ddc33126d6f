"""Game: a function of images as a cooperative game over the regions of one image."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protopfaith.arguments import instance, plain_tensor, shown, whole_number
from protopfaith.errors import ProtoPFaithError, is_out_of_memory
from protopfaith.files import reason
from protopfaith.shapley.baselines import check_options, make_baseline
from protopfaith.shapley.memory import Batches, fitting
from protopfaith.shapley.players import Players, as_coalitions, as_tensor

# How far two calls may differ, relative to the size of the output, before the function counts as random.
# The same batch twice: only the order of additions may differ. Another batch: another kernel may be
# chosen, too.
SAME_BATCH, OTHER_BATCH = 1e-4, 2e-3
SAME_BATCH_REDUCED, OTHER_BATCH_REDUCED = 2e-3, 5e-2
# An output may be a small difference of large numbers, whose rounding it keeps. How large they were it does
# not say; in networks they are about 1, or as large as the largest output. Outputs below this share of that
# count as being of this size.
SMALL = 0.1
LARGEST = 1e37  # estimators compute partly in float32, which ends at 3.4e38
MOST_OUTPUTS = 1 << 16  # of a game: beyond it the values of its coalitions take gigabytes


class Game:
    """v(S) = function(image with the players outside S replaced by the baseline), for vector-valued
    functions.

    Args:
        function: maps images `(B, C, H, W)` to numbers `(B, outputs)` (or `(B,)`), on the image's device. It
            must be deterministic: call `model.eval()` first.
        image: `(C, H, W)`, a tensor or an array, as the function expects it; its device is where everything
            runs.
        players: the regions, see `Players`; a number is the side of square windows in pixels.
        baseline: what replaces hidden players, see `make_baseline`.
        baseline_options: options of a named baseline.
        batch_size: images per call of `function`; by default as many as `memory` allows.
        memory: bytes that one batch may take (usually 4 GiB on a GPU, 128 MiB on a CPU). When memory runs out
            all the same, the batch is halved and evaluation goes on.
        autocast: a dtype such as `torch.bfloat16` runs the function under `torch.autocast`.
        check: whether to check that the function returns the same when called again.

    `game(coalitions)` maps a boolean `(m, n)` to values `(m, outputs)` on the image's device.

    >>> image = torch.arange(4.0).reshape(1, 2, 2)
    >>> game = Game(lambda x: x.flatten(1).sum(1), image, 1)
    >>> game(torch.tensor([[True, False, True, False]])).tolist()
    [[2.0]]
    """

    def __init__(
        self,
        function: Callable[[Tensor], Tensor],
        image: Tensor | np.ndarray,
        players: Players | int | Tensor,
        baseline: str | float | Sequence[float] | Tensor = "zero",
        *,
        baseline_options: dict | None = None,
        batch_size: int | None = None,
        memory: int | None = None,
        autocast: torch.dtype | None = None,
        check: bool = True,
    ):
        if not callable(function):
            raise TypeError(f"A game needs a function of a batch of images, not {type(function).__name__}.")
        image = _checked_image(image)
        players = _checked_players(players, image)
        _check_bounds(batch_size, memory)
        instance(check, (bool, np.bool_), "Whether to check the function", "True or False")
        if baseline_options is not None:
            instance(baseline_options, Mapping, "The options of a baseline", "a mapping of names to values")
            if isinstance(baseline, str):
                check_options(baseline.partition(":")[0], baseline_options)
        self.function = function
        self.image = image.detach()
        self.players = players.to(image.device)
        self.baseline, self.baseline_name = make_baseline(baseline, self.image, **(baseline_options or {}))
        self.autocast = _check_autocast(autocast)
        self._outputs: int | None = None  # as many as at the first call
        self.evaluations = 0
        self._images = self.image[None]
        self._baselines = self.baseline[None]
        self.memory = memory  # None: what is usual on the device
        self._batches = None if batch_size is None else Batches(batch_size)
        self._largest = torch.zeros((), device=self.device)  # of all values since the last check
        self.grand, self.empty = self._ends(check)
        # What the players share, (outputs,) in float64: value of all minus value of none.
        self.total = self.grand.double() - self.empty.double()

    def __repr__(self) -> str:
        outputs = f"{self.n_outputs} output{'s' if self.n_outputs > 1 else ''}"
        size = " x ".join(str(side) for side in self.image.shape)
        return (
            f"Game({outputs}, {self.players.description}, image {size} on {self.device}, "
            f"baseline {self.baseline_name}, {self.evaluations:,} evaluations)"
        )

    @property
    def device(self) -> torch.device:
        return self.image.device

    @property
    def n_players(self) -> int:
        return len(self.players)

    @property
    def n_outputs(self) -> int:
        return len(self.grand)

    @property
    def batch_size(self) -> int:
        """Images per call of the function; measured once, halved whenever memory runs out."""
        return self._measured().size

    def __call__(self, coalitions: Tensor) -> Tensor:
        values = self.unchecked(coalitions)
        self.check()
        return values

    @torch.no_grad()
    def unchecked(self, coalitions: Tensor) -> Tensor:
        """The values of coalitions, which a GPU may still be computing: `check` says whether all were finite.

        So the next coalitions are drawn while the last ones are evaluated.

        Args:
            coalitions: (m, n), true where a player is present
        """
        coalitions = as_coalitions(coalitions, self.n_players)  # of bools only the shape is looked at
        values = self._values(coalitions.to(self.device), self._measured())
        if len(values):  # NaN is passed on; a comparison of each value would take three times the operations
            largest = torch.linalg.vector_norm(values, math.inf)
            self._largest = torch.maximum(self._largest, largest)
        return values

    def check(self) -> None:
        """Raises if a value since the last check was out of range; waits for all values."""
        largest, self._largest = float(self._largest), self._largest.new_zeros(())
        _check_range(largest, "some coalition")

    def masked(self, coalitions: Tensor) -> Tensor:
        """The images `(m, C, H, W)` of coalitions.

        Args:
            coalitions: (m, n), true where a player is present
        """
        return torch.where(self.players.masks(coalitions), self._images, self._baselines)

    def _evaluate(self, images: Tensor) -> Tensor:
        with torch.autocast(images.device.type, dtype=self.autocast, enabled=self.autocast is not None):
            values = asked(self.function, images)
        instance(values, Tensor, "What the function of a game returns", "a tensor of numbers")
        if values.is_complex():
            raise ProtoPFaithError("The function returned complex numbers; return their size, or real parts.")
        plain_tensor(values, "What the function of a game returns", "a tensor")
        if values.dim() == 1:
            values = values[:, None]
        if values.dim() != 2 or len(values) != len(images) or not values.shape[1]:
            raise ProtoPFaithError(
                f"The function returned shape {tuple(values.shape)} for {len(images)} images; expected "
                f"one row of numbers per image."
            )
        check_outputs(values.shape[1])
        if self._outputs not in (None, values.shape[1]):
            raise ProtoPFaithError(
                f"The function returned {values.shape[1]} numbers per image, but {self._outputs} before; it "
                "must return as many at every call."
            )
        self._outputs = values.shape[1]
        # A copy: the function may write its next answer into the same memory, as CUDA graphs do.
        return values.to(values.dtype if values.dtype == torch.float64 else torch.float32, copy=True)

    def _values(self, coalitions: Tensor, batches: Batches) -> Tensor:
        values = [values for _, values in batches(lambda some: self._evaluate(self.masked(some)), coalitions)]
        self.evaluations += len(coalitions)
        return torch.cat(values) if values else self.grand.new_zeros(0, self.n_outputs)

    def _measured(self) -> Batches:
        if self._batches is None:
            self._batches = Batches(fitting(self._evaluate, self._images, self.memory))
        return self._batches

    @torch.no_grad()
    def _ends(self, check: bool) -> Tensor:
        """Values of all players and of none, (2, outputs), checked: does calling again give the same?"""
        ends = torch.stack([torch.ones(self.n_players), torch.zeros(self.n_players)]).bool().to(self.device)
        few = Batches(3)  # whatever the batch size: in a batch of one, batch statistics would not show
        first = self._values(ends, few)
        _check_range(float(torch.linalg.vector_norm(first, math.inf)), "the whole image or the baseline")
        if check:
            again, elsewhere = self._values(ends, few), self._values(ends[[0, 0, 1]], few)[1:]
            _check_repeatable(first, again, elsewhere, self.is_reduced)
        return first

    @property
    def is_reduced(self) -> bool:
        """Whether the function runs in a 16-bit dtype."""
        return self.autocast is not None or self.image.dtype in (torch.bfloat16, torch.float16)


def asked(function: Callable[[Tensor], Any], images: Tensor) -> Any:
    """What somebody's function says of images; what it raises is told in a sentence, with its cause.

    Args:
        function: of a batch of images
        images: (B, C, H, W)

    >>> asked(torch.numel, torch.zeros(1, 3, 4, 4))
    48
    """
    try:
        return function(images)
    except ProtoPFaithError:
        raise
    except Exception as error:
        if is_out_of_memory(error):  # a smaller batch may do
            raise
        shape = " x ".join(map(str, images.shape))
        raise ProtoPFaithError(
            f"The function fails on images of {shape} numbers ({type(error).__name__}: {reason(error)}); "
            "it gets float tensors of batch x channels x height x width: wrap one that wants something "
            "else, such as lambda x: function(x.permute(0, 2, 3, 1).numpy())."
        ) from error


def check_outputs(count: int, most: int = MOST_OUTPUTS) -> None:
    """Raises if a function has more outputs than there is memory for.

    Args:
        count: numbers for one image
        most: of them
    """
    if count > most:
        raise ProtoPFaithError(
            f"The function gives {count:,} numbers for an image, more than {most:,}; give those "
            "alone that are to be explained, such as lambda x: function(x)[:, :10]."
        )


def _checked_image(image: Tensor | np.ndarray) -> Tensor:
    """Arrays are C x H x W as tensors are: channels at the end are an error, and no guess is made."""
    is_array = isinstance(image, np.ndarray)
    if is_array and image.ndim == 3 and image.shape[-1] in (1, 3, 4) and image.shape[0] not in (1, 3, 4):
        raise ProtoPFaithError(
            f"The image is an array of shape {image.shape}, with its channels last; a game takes "
            "C x H x W: give image.transpose(2, 0, 1)."
        )
    instance(image, (Tensor, np.ndarray), "The image of a game", "a tensor of C x height x width")
    found = as_tensor(image, "The image of a game", "a tensor of C x height x width")
    if found.dim() != 3 or not found.numel():
        raise ProtoPFaithError(
            f"A game is played on one image of C x H x W, not on a tensor of shape {tuple(found.shape)}."
        )
    return found.float() if is_array and not found.is_floating_point() else found


def _checked_players(players: Players | int | Tensor, image: Tensor) -> Players:
    """A number is the side of windows in pixels, a tensor or an array a label image."""
    if isinstance(players, int | np.integer):
        players = Players.windows(
            image.shape[-2:], int(players) if not isinstance(players, bool) else players
        )
    elif isinstance(players, Tensor | np.ndarray):
        players = Players.from_labels(players)
    instance(players, Players, "The players of a game", "Players")
    expected = tuple(image.shape if players.labels.dim() == 3 else image.shape[1:])
    if tuple(players.labels.shape) != expected:
        raise ProtoPFaithError(
            f"The players do not cover the image: their labels are {tuple(players.labels.shape)}, but the "
            f"image is {expected}; make the players from this image's size."
        )
    return players


def _check_autocast(dtype: torch.dtype | None) -> torch.dtype | None:
    if dtype is not None and (
        not isinstance(dtype, torch.dtype) or dtype not in (torch.bfloat16, torch.float16)
    ):
        raise ProtoPFaithError(
            f"The autocast of a game must be torch.bfloat16, torch.float16 or None, not {shown(dtype)}."
        )
    return dtype


def _check_bounds(batch_size: int | None, memory: int | None) -> None:
    for name, bound in (("batch size", batch_size), ("memory bound", memory)):
        if bound is not None and whole_number(bound, f"The {name}") < 1:
            raise ProtoPFaithError(f"The {name} is {bound}, which holds no image; give a number above zero.")


def _check_range(largest: float, where: str) -> None:
    if not largest <= LARGEST:  # which NaN is not, either
        raise ProtoPFaithError(
            f"The function returned NaN, infinity or a number beyond {LARGEST:.0e} for {where}; Shapley "
            "values need finite numbers, so fix the function, run it in a wider dtype or divide its outputs "
            "by a constant."
        )


def sizes_of(ends: Tensor) -> Tensor:
    """How large each output is, `(outputs,)`: what rounding is measured by. Never zero, see `SMALL`.

    `ends` are the values of all players and of none, `(2, outputs)`.
    """
    sizes = ends.abs().amax(0)
    return torch.maximum(sizes, SMALL * sizes.max().clamp_min(1.0))


def _check_repeatable(first: Tensor, again: Tensor, elsewhere: Tensor, reduced: bool) -> None:
    same = SAME_BATCH_REDUCED if reduced else SAME_BATCH
    other = OTHER_BATCH_REDUCED if reduced else OTHER_BATCH
    size = sizes_of(first)
    for values, tolerance in ((again, same), (elsewhere, other)):
        change = (values - first).abs().amax(0)
        if bool((change > tolerance * size).any()):
            worst = float((change / size).max())
            raise ProtoPFaithError(
                f"The function's output changes between calls on the same image (by {100 * worst:.2g}%); "
                "switch off dropout and batch statistics with model.eval(), or make the Game with "
                "check=False if it is meant to."
            )

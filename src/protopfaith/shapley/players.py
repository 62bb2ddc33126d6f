"""Players: the regions of an image that are present or absent together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protopfaith.arguments import finite_number, instance, plain_tensor, shown, whole_number
from protopfaith.devices import as_device
from protopfaith.errors import ProtoPFaithError
from protopfaith.limits import check_pixels

STIFFER = 3  # times that the compactness of superpixels is raised, fourfold each time
WHOLE = (torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.uint32, torch.uint64)


@dataclass(frozen=True, eq=False, repr=False)
class Players:
    """Which player every pixel belongs to. Every pixel has a player and every number has a pixel.

    Args:
        labels: the player's number 0 ... n-1 for every pixel: `H x W` if a player has all channels of its
            pixels, `C x H x W` if channels are players of their own.
        kind: how they were made, for people.

    >>> players = Players.windows((5, 4), 2)
    >>> len(players), players.labels.tolist()[-1]
    (6, [4, 4, 5, 5])
    """

    labels: Tensor
    kind: str = "labels"

    def __post_init__(self) -> None:
        _check_labels(self.labels)
        instance(self.kind, str, "What players are called", "text")

    @staticmethod
    def windows(
        image_size: Sequence[int], size: int | Sequence[int], *, channels: int | None = None
    ) -> Players:
        """Windows from the top left corner on; the last row and column may be smaller.

        Args:
            image_size: `(H, W)`.
            size: pixels of a window's side, or `(height, width)`.
            channels: how many there are, where every channel of a window is to be a player of its own.
        """
        height, width = height_and_width(image_size, "The image size")
        down, right = height_and_width(size, "The size of windows")
        if min(down, right, height, width) < 1:
            raise ProtoPFaithError(
                f"Windows of {down}x{right} pixels on an image of {height}x{width} make no players; "
                "give sizes of at least one pixel."
            )
        check_pixels(width, height, "The image that windows are to cover")
        rows = torch.arange(height) // down
        columns = torch.arange(width) // right
        labels = rows[:, None] * (int(columns[-1]) + 1) + columns
        return _apart(labels, channels, f"windows {down}x{right}")

    @staticmethod
    def superpixels(
        image: Tensor, n: int, *, compactness: float = 10.0, channels: int | None = None
    ) -> Players:
        """About `n` superpixels by scikit-image's SLIC.

        Args:
            image: `C x H x W`, of any scale.
            n: how many to aim at.
            compactness: how much distance counts against color. It is raised where far fewer superpixels are
                found, as in noise, of which SLIC leaves a single one.
            channels: how many there are, where every channel of a superpixel is to be a player of its own.
        """
        from skimage.segmentation import slic

        image = as_tensor(image, "The image", "a tensor of C x height x width")
        if image.dim() == 3 and image.numel():
            check_pixels(image.shape[-1], image.shape[-2], "The image of superpixels")
        if image.dim() != 3 or not image.numel() or not bool(image.float().isfinite().all()):
            raise ProtoPFaithError(
                f"Superpixels need an image of C x height x width with finite pixels, not of shape "
                f"{tuple(image.shape)}."
            )
        pixels_there = image.shape[-2] * image.shape[-1]
        whole_number(n, "The number of superpixels", least=1, most=pixels_there)
        compactness = finite_number(compactness, "The compactness of superpixels", above=0)
        pixels = image.detach().float().cpu()
        low, high = pixels.amin(), pixels.amax()
        pixels = (pixels - low) / (high - low).clamp_min(1e-12)  # compactness weighs color against distance
        for stiffness in (compactness * 4**power for power in range(STIFFER + 1)):
            segments = slic(
                pixels.permute(1, 2, 0).numpy(),
                n_segments=n,
                compactness=stiffness,
                start_label=0,
                channel_axis=-1,
                convert2lab=pixels.shape[0] == 3,
            )
            _, labels = torch.as_tensor(segments).long().unique(return_inverse=True)
            found = int(labels.max()) + 1
            if 2 * found >= n:
                break
        return _apart(labels, channels, f"superpixels {n}" if found == n else f"superpixels, {n} asked for")

    @staticmethod
    def from_labels(labels: Tensor | Sequence) -> Players:
        """Players from a label image of your own.

        Args:
            labels: the player of every pixel, `H x W` or `C x H x W`, whole numbers of any type
        """
        tensor = as_tensor(labels, "Players", "a label image of H x W whole numbers")
        return Players(tensor.long() if tensor.dtype in WHOLE else tensor, "labels")

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        height, width = self.image_size
        return f"Players({self.description}, {height} x {width} pixels)"

    @cached_property
    def n(self) -> int:
        return int(self.labels.max()) + 1

    @property
    def image_size(self) -> tuple[int, int]:
        return (self.labels.shape[-2], self.labels.shape[-1])

    @property
    def description(self) -> str:
        apart = ", channels apart" if self.labels.dim() == 3 else ""
        return f"{self.n} players ({self.kind}{apart})"

    def to(self, device: torch.device | str) -> Players:
        """The same players on another device.

        Args:
            device: cpu, cuda, cuda:1, ...
        """
        origin: Players = self.__dict__.get("_origin", self)
        device = as_device(device)
        try:
            if origin.labels.device == device:
                return origin  # nothing is sent back to where it came from
            labels = self.labels.to(device)
        except (RuntimeError, AssertionError):
            raise ProtoPFaithError(f"The device {device} is not on this machine; use cpu.") from None
        if labels is self.labels:
            return self
        moved = object.__new__(Players)  # what was checked once is not checked again
        moved.__dict__.update(labels=labels, kind=self.kind, n=self.n, _origin=origin)
        return moved

    def masks(self, coalitions: Tensor) -> Tensor:
        """Coalitions as pixel masks `(m, 1 or C, H, W)`, true where a player is present.

        Args:
            coalitions: (m, n), true where a player is present
        """
        coalitions = as_coalitions(coalitions, self.n)
        masks = coalitions.index_select(1, self.labels.reshape(-1))
        return masks.reshape(len(coalitions), *self.labels.shape[:-2] or (1,), *self.image_size)

    def to_map(self, values: Tensor) -> Tensor:
        """Values painted onto their pixels: `(..., H, W)`, or `(..., C, H, W)` with channels apart.

        Args:
            values: one for each player, (..., n)
        """
        values = as_tensor(values, "The values of a map", "a tensor of one number per player")
        if not values.dim() or values.shape[-1] != self.n:
            raise ProtoPFaithError(
                f"There are {self.n} players, but the values have the shape {tuple(values.shape)}; give one "
                "value per player."
            )
        return values[..., self.labels.to(values.device)]

    @cached_property
    def flat(self) -> Players:
        """Players that take all channels along, for maps (H, W): the regions whose pixels belong to the same
        players in every channel; itself where channels are not apart.

        >>> players = Players.windows((4, 4), 2, channels=3)
        >>> len(players), len(players.flat)
        (12, 4)
        """
        if self.labels.dim() == 2:
            return self
        _, labels = self.labels.flatten(1).unique(dim=1, return_inverse=True)
        return Players(labels.reshape(self.image_size), self.kind)

    @cached_property
    def sizes(self) -> Tensor:
        """How many pixels each player has, `(n,)`."""
        return torch.bincount(self.labels.reshape(-1), minlength=self.n)

    @cached_property
    def centers(self) -> Tensor:
        """Where each player is, `(n, 3)`: channel, row, column of its center of mass in pixels."""
        labels = self.labels if self.labels.dim() == 3 else self.labels[None]
        grid = torch.meshgrid(*(torch.arange(s, device=labels.device) for s in labels.shape), indexing="ij")
        sums = torch.zeros(self.n, 3, dtype=torch.float64, device=labels.device)
        sums.index_add_(0, labels.reshape(-1), torch.stack([g.reshape(-1) for g in grid], 1).double())
        return sums / self.sizes[:, None]


def as_tensor(value: Any, what: str, expected: str) -> Tensor:
    """A tensor of real numbers, from one, an array of any byte order or a list.

    >>> as_tensor([[1, 2]], "The labels", "a tensor").shape
    torch.Size([1, 2])
    """
    try:
        if isinstance(value, np.ndarray):
            value = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("="))
        found = value if isinstance(value, Tensor) else torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise ProtoPFaithError(f"{what} must be {expected}, not {shown(value)}.") from None
    return plain_tensor(found, what, expected)


def as_coalitions(value: Any, n: int) -> Tensor:
    """Who is present, `(m, n)`: true or false, or ones and zeros."""
    expected = f"true or false for each of the {n} players, of shape (coalitions, {n})"
    found = as_tensor(value, "Coalitions", expected)
    if found.dim() != 2 or found.shape[1] != n:
        raise ProtoPFaithError(f"Coalitions must be {expected}, not of shape {tuple(found.shape)}.")
    if found.dtype == torch.bool:
        return found
    present = found == 1
    if not bool((present | (found == 0)).all()):
        raise ProtoPFaithError(f"Coalitions must be {expected}, not other numbers than 0 and 1.")
    return present


def height_and_width(value: int | Sequence[int], what: str, *, least: int | None = None) -> tuple[int, int]:
    """Height and width, from one number or two.

    >>> height_and_width(8, "The size"), height_and_width([8, 4], "The size")
    ((8, 8), (8, 4))
    """
    if isinstance(value, (np.ndarray, Tensor)):
        value = as_tensor(value, what, "one number or (height, width)").tolist()
    pair = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value, value)
    if len(pair) != 2:
        raise ProtoPFaithError(f"{what} is one number or (height, width), not {shown(value)}.")
    first, second = (whole_number(one, what, least=least, most=10**9) for one in pair)
    return first, second


def _apart(labels: Tensor, channels: int | None, kind: str) -> Players:
    if channels is None:
        return Players(labels, kind)
    whole_number(channels, "The number of channels", least=1, most=10_000)
    step = int(labels.max()) + 1
    return Players(torch.stack([labels + c * step for c in range(channels)]), kind)


def _check_labels(labels: Tensor) -> None:
    plain_tensor(
        instance(labels, Tensor, "Players", "a label image, a tensor of H x W"), "Players", "a label image"
    )
    if labels.dim() not in (2, 3) or labels.numel() == 0:
        raise ProtoPFaithError(
            f"Players need a label image of H x W or C x H x W pixels, not of shape {tuple(labels.shape)}."
        )
    check_pixels(labels.shape[-1], labels.numel() // labels.shape[-1], "A label image")
    if labels.dtype != torch.long:
        raise ProtoPFaithError(
            f"Players need whole numbers of type int64 as labels, not {labels.dtype}; convert them with "
            f".long()."
        )
    if int(labels.max()) >= labels.numel():  # looked at first: counting takes memory for each number
        raise ProtoPFaithError(
            f"The label {int(labels.max())} is more than there are pixels ({labels.numel()}), so that some "
            "players would be empty; number the players 0 ... n-1 without gaps."
        )
    if int(labels.min()) < 0:
        uncovered = int((labels < 0).sum())
        raise ProtoPFaithError(
            f"{uncovered} pixels belong to no player (their label is negative); give every pixel a player, "
            "for example one more player for the background."
        )
    counts = torch.bincount(labels.reshape(-1))
    if int(counts.min()) == 0:
        raise ProtoPFaithError(
            f"Player {int(counts.argmin())} is empty: no pixel has its label; number the players 0 ... "
            f"n-1 without gaps."
        )

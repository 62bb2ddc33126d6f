r"""An image whose players are present at random: what goes into a network in an image's place.

A player is one on/off variable, shared by all its pixels and channels. With $c_{ui}$ player i's
contribution to unit u of the first linear layer, $\sum_i c_{ui}$ and $\sum_i c_{ui}^2$ are all
that mean and variance of that layer need, and the second takes a few masked passes: one for each color,
where no two players of one color share a receptive field.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from protopfaith.errors import ProtoPFaithError
from protopfaith.moments.gaussian import Gaussian
from protopfaith.shapley.estimators.moment_propagation.coloring import color_players

Map = Callable[[Tensor], Tensor]
LAYERS = 16  # first layers whose contributions are kept
CHUNK = 64  # masked images that go through the first layer at a time


class Contributions:
    """What every player contributes to every unit of a linear layer.

    `linear` is the layer without its bias, `start` (1, units) its value for the baseline, `change`
    (1, C, H, W) the image minus the baseline, `labels` (1, C or 1, H, W) the player of each pixel.
    """

    def __init__(
        self,
        linear: Map,
        squared: Map,
        *,
        start: Tensor,
        change: Tensor,
        labels: Tensor,
        reach: Sequence[int] | None,
    ):
        self.linear, self.squared, self.start = linear, squared, start
        self.change, self.labels, self.reach = change, labels, reach

    @cached_property
    @torch.no_grad()
    def total(self) -> Tensor:
        """sum_i c_ui, (1, units)"""
        return self.linear(self.change)

    @cached_property
    @torch.no_grad()
    def squares(self) -> Tensor:
        """sum_i c_ui^2, (1, units)"""
        squares = torch.zeros_like(self.total)
        for masked in self._masked():
            squares += self.linear(masked).square().sum(0, keepdim=True)
        return squares

    @cached_property
    @torch.no_grad()
    def pixel_squares(self) -> Tensor:
        """The sum of squares if every pixel and channel were a player, (1, units)."""
        return self.squared(self.change.square())

    @torch.no_grad()
    def of(self, players: Tensor) -> Tensor:
        """c_ui of the given players (m,), (m, units)"""
        return self.linear(self._only(players))

    @torch.no_grad()
    def pixel_squares_of(self, players: Tensor) -> Tensor:
        """As `pixel_squares`, for each of the given players alone, (m, units)."""
        return self.squared(self._only(players).square())

    def entries_of(self, players: Tensor) -> Tensor:
        """How many pixels times channels each of the given players has, (m,)."""
        labels = self.labels.expand_as(self.change).reshape(-1)
        return torch.bincount(labels, minlength=int(players.max()) + 1)[players]

    @torch.no_grad()
    def along(self, directions: Tensor) -> Tensor:
        """sum_i d_ki c_ui for directions (K, n): (K, units)"""
        return self.linear(self.change * directions[:, self.labels[0]])

    @torch.no_grad()
    def pulled_back(self, gradients: Tensor) -> Tensor:
        """sum_u g_u c_ui for gradients (m, units): (m, n)"""
        return self._adjoint(gradients, self.change)

    @torch.no_grad()
    def squares_pulled_back(self, gradients: Tensor) -> Tensor:
        """sum_u g_u c_ui^2 for gradients (m, units): (m, n)"""
        sums: Any = 0
        for masked in self._masked():
            for one in masked.split(1):
                sums = sums + self._adjoint(gradients * self.linear(one), one)
        return sums

    def _adjoint(self, gradients: Tensor, change: Tensor) -> Tensor:
        with torch.enable_grad():
            point = torch.zeros_like(change).expand(len(gradients), *change.shape[1:]).requires_grad_()
            (pixels,) = torch.autograd.grad(self.linear(point), point, gradients)
        labels = self.labels.expand_as(change).reshape(-1)
        sums = pixels.new_zeros(len(gradients), int(self.labels.max()) + 1)
        return sums.index_add_(1, labels, (pixels * change).flatten(1))

    def _only(self, players: Tensor) -> Tensor:
        return self.change * (self.labels == players.reshape(-1, *(1,) * (self.labels.dim() - 1)))

    @cached_property
    def _colors(self) -> Tensor:
        """The color of every pixel, in the shape of `labels`."""
        return color_players(self.labels[0], self.reach)[self.labels]

    def _masked(self) -> Any:
        """The change, one color at a time, in batches."""
        count = int(self._colors.max()) + 1
        numbers = torch.arange(count, device=self.change.device)
        for some in numbers.split(CHUNK):
            yield self.change * (self._colors == some.reshape(-1, *(1,) * (self._colors.dim() - 1)))


class Draw(Protocol):
    """A batch of ways to draw who is present."""

    def __len__(self) -> int: ...

    def moments(self, contributions: Contributions) -> Gaussian:
        """Mean and variance of every unit, (len(self), units)."""
        ...


class PlayerImage(Gaussian):
    """An image in which players are present at random, for a batch of draws.

    Its first linear layer (convolution, linear, pooling) yields an ordinary `Gaussian`; operations
    that keep pixels apart (padding, scaling, batch norm, reshaping) leave it what it is. Whatever else
    comes first sees every pixel as a variable of its own.

    Args:
        start: the baseline (1, C, H, W)
        change: the image minus the baseline (1, C, H, W)
        labels: the player of each pixel, (1, C or 1, H, W)
        draw: who is present
        memory: what is known of first layers, shared by all images that come from one
    """

    def __init__(self, start: Tensor, change: Tensor, labels: Tensor, draw: Draw, memory: list | None = None):
        self._start, self._change, self._labels = start, change, labels
        self._draw, self._memory = draw, [] if memory is None else memory
        self._family = []

    @classmethod
    def of(cls, image: Tensor, baseline: Tensor, labels: Tensor, draw: Draw) -> PlayerImage:
        """From image and baseline (C, H, W) and the player of each pixel, (H, W) or (C, H, W)."""
        labels = labels.reshape(1, -1, *labels.shape[-2:])
        return cls(baseline[None], (image - baseline)[None], labels, draw)

    def drawn(self, draw: Draw) -> PlayerImage:
        """The same image with other draws; what is known about its first layer stays known."""
        return self._like(self._start, self._change, self._labels, draw)

    def linear_map(
        self,
        affine: Map,
        linear: Map,
        squared: Map,
        reach: Sequence[int] | None = None,
        key: tuple | None = None,
    ) -> Gaussian:
        return self._draw.moments(self._remembered(affine, linear, squared, reach, key))

    def scale(self, affine: Map, linear: Map, squared: Map, move: Map | None = None) -> Gaussian:
        start, change = affine(self._start), linear(self._change)
        if start.shape[0] != 1 or start.dim() != self._start.dim():
            return self.plain().scale(affine, linear, squared, move)
        labels = self._labels.expand_as(change) if move is None else move(self._full)
        return self._like(start, change, labels, self._draw)

    def each(self, function: Callable[[Tensor], Any]) -> Any:
        def move(x: Tensor) -> Any:
            return function(x.expand(len(self._draw), *x.shape[1:]).contiguous())

        moved = [move(x) for x in (self._start, self._change, self._labels.expand_as(self._change))]
        several = not isinstance(moved[0], Tensor)
        results = []
        for start, change, labels in zip(*moved, strict=True) if several else [moved]:
            if not start.dim() or start.shape[0] != len(self._draw) or labels.is_floating_point():
                return self.plain().each(function)
            results.append(self._like(start[:1], change[:1], labels[:1], self._draw))
        return tuple(results) if several else results[0]

    @staticmethod
    def joined(parts: Sequence[Gaussian], join: Callable[[list[Tensor]], Tensor]) -> Gaussian:
        images = [part for part in parts if isinstance(part, PlayerImage)]
        together = len(images) == len(parts) and all(p._draw is images[0]._draw for p in images)
        plain = [part.plain() if isinstance(part, PlayerImage) else part for part in parts]
        if not together:
            return Gaussian.joined(plain, join)
        start = join([p._start for p in images])
        if start.shape[0] != 1:
            return Gaussian.joined(plain, join)
        change, labels = join([p._change for p in images]), join([p._full for p in images])
        return images[0]._like(start, change, labels, images[0]._draw)

    def plain(self) -> Gaussian:
        """Every pixel as a random variable of its own."""
        return self.linear_map(_same, _same, _same, (1,) * (self._change.dim() - 2), ("pixels",))

    def become(self, other: Gaussian, operation: str) -> Gaussian:
        if not isinstance(other, PlayerImage):
            raise ProtoPFaithError(
                f"{operation} would change the network's input in place, which moment propagation cannot "
                "follow; use the operation that is not in place there."
            )
        self._start, self._change, self._labels = other._start, other._change, other._labels
        self._draw, self._memory, self._family = other._draw, other._memory, []
        self.__dict__.pop("_plain", None)
        return self

    @property
    def _full(self) -> Tensor:
        return self._labels.expand_as(self._change)

    @cached_property
    def _plain(self) -> Gaussian:
        return self.plain()

    @property
    def _mean(self) -> Tensor:  # type: ignore[override]
        return self._plain.moments[0]

    @property
    def _variance(self) -> Tensor:  # type: ignore[override]
        return self._plain.variance

    @property
    def _factors(self) -> Tensor | None:  # type: ignore[override]
        return self._plain.factors

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "size", "dim", "ndim", "dtype", "device", "is_cuda"):
            return getattr(self._change.expand(len(self._draw), *self._change.shape[1:]), name)
        return super().__getattr__(name)

    def __len__(self) -> int:
        return len(self._draw)

    def __repr__(self) -> str:
        return f"PlayerImage(shape={tuple(self.shape)}, players={int(self._labels.max()) + 1})"

    def _like(self, start: Tensor, change: Tensor, labels: Tensor, draw: Draw) -> PlayerImage:
        return PlayerImage(start, change, labels, draw, self._memory)

    @torch.no_grad()
    def _remembered(
        self, affine: Map, linear: Map, squared: Map, reach: Sequence[int] | None, key: tuple | None
    ) -> Contributions:
        """The contributions to a layer; those to the same layer (`key`) of the same image are worked out
        once."""
        for known, contributions in self._memory:
            if (
                key is not None
                and _same_layer(key, known)
                and torch.equal(contributions.change, self._change)
                and torch.equal(contributions.labels, self._labels)
            ):
                return contributions
        contributions = Contributions(
            linear,
            squared,
            start=affine(self._start),
            change=self._change,
            labels=self._labels,
            reach=reach,
        )
        if key is not None:
            self._memory[:] = [*self._memory[-LAYERS:], (key, contributions)]
        return contributions


def _same_layer(key: tuple, other: tuple) -> bool:
    """Tensors are the same if they are the same object: a layer's weights."""
    pairs = zip(key, other, strict=True) if len(key) == len(other) else [(0, 1)]
    return all(a is b if isinstance(a, Tensor) or isinstance(b, Tensor) else bool(a == b) for a, b in pairs)


def _same(x: Tensor) -> Tensor:
    return x

"""CUDA graphs of V's training step: its many small kernels, forward and backward, launched as two.

A step of a ResNet50 launches more than a thousand kernels. Where the GPU is done with them sooner than the
processor can launch them, it waits; captured once and replayed, they cost hardly any launching.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from protopfaith.files import reason

WORTHWHILE = 40
"""Steps of a stage: capturing takes as long as a dozen or two."""
PASSES = 2
"""Of one step: whole images, and copies with hidden regions."""
TRIALS = 3
"""Passes before capturing, in which libraries choose their ways."""
CLOSE = 0.02
"""The relative difference, at most, between what is replayed and what is computed, for rounding."""
Step = Callable[[Tensor], Tensor]
Capture = Callable[[nn.Module, Tensor], Step]


class GraphedEncoder:
    """V, whose step is replayed for training batches like the first one; all else takes the plain way.

    Evaluation mode, passes without gradients and batches of another shape are not replayed, nor is a second
    pass before the first one's gradients are there: both would use the same memory. If that is of another
    shape or with batch norms in another mode, as of copies with hidden regions, it is captured by itself.

    Args:
        encoder: V, with those weights trainable that the stage trains
        say: takes the sentence on why nothing could be captured
        steps: of the stage, or 0 for a stage that is not to be captured
        capture: turns V and a batch into a function that does the same
    """

    def __init__(
        self,
        encoder: nn.Module,
        say: Callable[[str], None],
        steps: int,
        capture: Capture | None = None,
    ):
        self.encoder, self.say, self.capture = encoder, say, capture or capture_step
        trained = all(parameter.requires_grad for parameter in encoder.parameters())
        self.wanted = trained and steps >= WORTHWHILE
        self.most = PASSES  # that are captured; as many as could be, once one could not
        self.steps: dict[tuple[Any, ...], Step] = {}  # by what batches have in common
        self._awaiting_gradients: set[tuple[Any, ...]] = set()

    @contextmanager
    def replaying(self) -> Iterator[None]:
        """Inside, calling the encoder replays where that can be."""
        if not self.wanted:
            yield
            return
        self.encoder.__dict__["forward"] = self._forward
        self._awaiting_gradients.clear()
        try:
            yield
        finally:
            self.encoder.__dict__.pop("forward", None)

    def close(self) -> None:
        """Gives back the memory, in which the last gradients are, too."""
        if not self.steps:
            return
        self.steps.clear()
        for parameter in self.encoder.parameters():
            parameter.grad = None
        gc.collect()

    def _forward(self, images: Tensor) -> Tensor:
        if not self._can_be_replayed(images):
            return self._plainly(images)
        kind = _kind(self.encoder, images)
        if self._is_to_be_captured(kind):
            self._prepare(kind, images)
        if kind not in self.steps or kind in self._awaiting_gradients:
            return self._plainly(images)
        encoded = self.steps[kind](images)
        self._awaiting_gradients.add(kind)
        encoded.register_hook(lambda gradient: self._awaiting_gradients.discard(kind))
        return encoded

    def _can_be_replayed(self, images: Tensor) -> bool:
        trained = self.encoder.training and torch.is_grad_enabled()
        return self.wanted and trained and not images.requires_grad

    def _is_to_be_captured(self, kind: tuple[Any, ...]) -> bool:
        """The first pass of a step, and the second after it; not a batch that only has another shape."""
        return kind not in self.steps and len(self.steps) == len(self._awaiting_gradients) < self.most

    def _prepare(self, kind: tuple[Any, ...], images: Tensor) -> None:
        """Captures the step; where that fails, says so once."""
        patched = self.encoder.__dict__.pop("forward")
        try:
            self.steps[kind] = self.capture(self.encoder, images)
        except (RuntimeError, AssertionError, ValueError) as error:  # of torch, when something cannot be
            self.most = len(self.steps)
            what = "second pass of a training step" if self.steps else "encoder's step"
            self.say(
                f"The {what} could not be captured as a CUDA graph ({reason(error)}); training goes "
                "on without, more slowly."
            )
        finally:
            self.encoder.__dict__["forward"] = patched

    def _plainly(self, images: Tensor) -> Tensor:
        encoded: Tensor = type(self.encoder).forward(self.encoder, images)
        return encoded


def can_be_captured(device: torch.device, ranks: int, *, compiled: bool) -> bool:
    """One GPU; what is compiled, or shared by several devices, has ways of its own.

    >>> can_be_captured(torch.device("cpu"), 1, compiled=False)
    False
    """
    return device.type == "cuda" and ranks == 1 and not compiled


def capture_step(encoder: nn.Module, images: Tensor) -> Step:
    """The encoder's forward and backward pass for batches like `images` as CUDA graphs.

    Its own gradients of the step before are expected to be cleared; those of another pass are added to.
    Trying it out beforehand moves running statistics and draws random numbers: both are put back.

    Raises:
        RuntimeError: if it cannot be captured, or what is replayed is not what is computed
    """
    statistics = [buffer.clone() for buffer in encoder.buffers()]
    random = torch.get_rng_state(), torch.cuda.get_rng_state(images.device)

    def put_back() -> None:
        with torch.no_grad():
            for buffer, before in zip(encoder.buffers(), statistics, strict=True):
                buffer.copy_(before)
        torch.set_rng_state(random[0])
        torch.cuda.set_rng_state(random[1], images.device)

    stream = torch.cuda.current_stream(images.device)
    try:
        with _without_cached_casts():
            graphs = _capture(encoder, images)
            put_back()
            _check(encoder, graphs, images, put_back)
    except RuntimeError:
        _clean_up(stream)
        raise
    finally:
        put_back()
    anchor = torch.zeros((), device=images.device, requires_grad=True)
    return lambda images: _Replayed.apply(graphs, images, anchor)


@dataclass
class Graphs:
    """Two graphs and the memory that they work on."""

    forward: torch.cuda.CUDAGraph
    backward: torch.cuda.CUDAGraph
    images: Tensor
    encoded: Tensor
    gradient: Tensor  # of what is encoded
    trained: list[tuple[nn.Parameter, Tensor]]  # and their gradients

    def encode(self, images: Tensor) -> Tensor:
        self.images.copy_(images)
        self.forward.replay()
        return self.encoded.detach()

    def differentiate(self, gradient: Tensor) -> None:
        self.gradient.copy_(gradient)
        self.backward.replay()
        for parameter, own in self.trained:
            if parameter.grad is None:
                parameter.grad = own
            else:  # of another pass in the same step
                parameter.grad.add_(own)


class _Replayed(torch.autograd.Function):
    """One node for the whole encoder. It hands out gradients itself: a node for each weight would cost more
    than replaying all of them."""

    @staticmethod
    def forward(ctx: Any, graphs: Graphs, images: Tensor, anchor: Tensor) -> Tensor:
        ctx.graphs = graphs
        return graphs.encode(images)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None]:
        ctx.graphs.differentiate(gradient)
        return None, None, None


def _capture(encoder: nn.Module, images: Tensor) -> Graphs:
    weights = list(encoder.parameters())
    images = images.detach().clone()
    stream = torch.cuda.Stream(images.device)

    def differentiated(encoded: Tensor, gradient: Tensor) -> list[tuple[nn.Parameter, Tensor]]:
        found = torch.autograd.grad(encoded, weights, gradient, allow_unused=True)
        pairs = zip(weights, found, strict=True)
        return [(weight, _laid_out(own, weight)) for weight, own in pairs if own is not None]

    stream.wait_stream(torch.cuda.current_stream(images.device))
    with torch.cuda.stream(stream):
        for _ in range(TRIALS):
            encoded = encoder(images)
            differentiated(encoded, torch.ones_like(encoded))
        del encoded
    torch.cuda.current_stream(images.device).wait_stream(stream)
    forward, backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    # Threads that load images may go on with what they do on the GPU.
    with torch.cuda.graph(forward, stream=stream, capture_error_mode="thread_local"):
        encoded = encoder(images)
    gradient = torch.zeros_like(encoded)
    with torch.cuda.graph(backward, pool=forward.pool(), stream=stream, capture_error_mode="thread_local"):
        trained = differentiated(encoded, gradient)
    return Graphs(forward, backward, images, encoded.detach(), gradient, trained)


def _without_cached_casts() -> torch.autocast:
    """Autocast as it is, without its cache.

    A cached cast of weights would be that of the first step for ever, and would tie the weights' gradients
    to the stream that it was made on: a second pass could not be captured then.
    """
    enabled, dtype = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
    return torch.autocast("cuda", dtype=dtype, enabled=enabled, cache_enabled=False)


def _clean_up(stream: torch.cuda.Stream) -> None:
    """After a capture that failed: torch may still be on its stream, and take random numbers as captured ones
    until another capture ends well."""
    torch.cuda.set_stream(stream)
    torch.cuda.synchronize(stream.device)
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        torch.zeros(1, device=stream.device)


def _laid_out(gradient: Tensor, weight: Tensor) -> Tensor:
    """In memory like its weight, as optimizers want it."""
    sides = zip(gradient.shape, gradient.stride(), weight.stride(), strict=True)
    if gradient.dtype == weight.dtype and all(one == other for side, one, other in sides if side > 1):
        return gradient
    return torch.empty_like(weight).copy_(gradient)


@torch.no_grad()
def _check(encoder: nn.Module, graphs: Graphs, images: Tensor, put_back: Callable[[], None]) -> None:
    """Raises if the same batch gives something else: an encoder that decides in Python is frozen."""
    computed = encoder(images).float()
    put_back()
    difference = (graphs.encode(images).float() - computed).norm() / computed.norm().clamp_min(1e-12)
    if not bool(difference < CLOSE):
        raise RuntimeError(f"what is replayed differs by {float(difference):.2g}")


def _kind(encoder: nn.Module, images: Tensor) -> tuple[Any, ...]:
    """What passes must have in common."""
    device = images.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
    modes = tuple(module.training for module in encoder.modules())
    return images.shape, images.dtype, images.device, images.stride(), dtype, modes

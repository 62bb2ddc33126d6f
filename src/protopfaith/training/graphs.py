"""CUDA graphs of V's training step: its many small kernels, forward and backward, launched as two.

A step of a ResNet50 launches more than a thousand kernels. Where the GPU is done with them sooner than the
processor can launch them, it waits; captured once and replayed, they cost hardly any launching.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from protopfaith.files import reason

WORTHWHILE = 40
"""Steps of a stage: capturing takes as long as a dozen or two."""
CLOSE = 0.02
"""The relative difference, at most, between what is replayed and what is computed, for rounding."""
Step = Callable[[Tensor], Tensor]
Capture = Callable[[nn.Module, Tensor], Step]


class GraphedEncoder:
    """V, whose step is replayed for training batches like the first one; all else takes the plain way.

    Evaluation mode, passes without gradients and batches of another shape are not replayed, nor is a second
    pass before the first one's gradients are there: both would use the same memory.

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
        self.step: Step | None = None
        self._like: tuple[Any, ...] | None = None
        self._awaiting_gradients = False

    @contextmanager
    def replaying(self) -> Iterator[None]:
        """Inside, calling the encoder replays where that can be."""
        if not self.wanted:
            yield
            return
        self.encoder.__dict__["forward"] = self._forward
        self._awaiting_gradients = False
        try:
            yield
        finally:
            self.encoder.__dict__.pop("forward", None)

    def close(self) -> None:
        """Gives back the memory, in which the last gradients are, too."""
        if self.step is None:
            return
        self.step = None
        for parameter in self.encoder.parameters():
            parameter.grad = None
        gc.collect()  # torch before 2.10 keeps graphs in cycles of references

    def _forward(self, images: Tensor) -> Tensor:
        if not self._can_replay(images):
            return self._plainly(images)
        if self.step is None:
            self._prepare(images)
        if self.step is None:
            return self._plainly(images)
        encoded = self.step(images)
        self._awaiting_gradients = True
        encoded.register_hook(self._gradients_come)
        return encoded

    def _can_replay(self, images: Tensor) -> bool:
        if not self.wanted or not self.encoder.training or not torch.is_grad_enabled():
            return False
        if self._awaiting_gradients or images.requires_grad:
            return False
        return self._like is None or self._like == _kind(images)

    def _prepare(self, images: Tensor) -> None:
        """Captures the step; where that fails, says so once."""
        patched = self.encoder.__dict__.pop("forward")
        try:
            self.step = self.capture(self.encoder, images)
            self._like = _kind(images)
        except (RuntimeError, AssertionError, ValueError) as error:  # of torch, when something cannot be
            self.wanted = False
            self.say(
                f"The encoder's step could not be captured as a CUDA graph ({reason(error)}); training goes "
                "on without, more slowly."
            )
        finally:
            self.encoder.__dict__["forward"] = patched

    def _plainly(self, images: Tensor) -> Tensor:
        encoded: Tensor = type(self.encoder).forward(self.encoder, images)
        return encoded

    def _gradients_come(self, gradient: Tensor) -> None:
        self._awaiting_gradients = False


def can_be_captured(device: torch.device, ranks: int, *, compiled: bool, streamed: bool) -> bool:
    """One GPU; what is compiled, or shared by several devices, has ways of its own.

    >>> can_be_captured(torch.device("cpu"), 1, compiled=False, streamed=False)
    False
    """
    if device.type != "cuda" or ranks > 1 or compiled:
        return False
    return not streamed or bool(_beside_other_threads())


def capture_step(encoder: nn.Module, images: Tensor) -> Step:
    """The encoder's forward and backward pass for batches like `images` as CUDA graphs.

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

    torch.cuda.empty_cache()  # graphs have memory of their own
    try:
        # A cached cast of weights would be that of the first step for ever.
        with torch.autocast(
            "cuda",
            dtype=torch.get_autocast_dtype("cuda"),
            enabled=torch.is_autocast_enabled("cuda"),
            cache_enabled=False,
        ):
            torch.cuda.make_graphed_callables(
                encoder, (images.detach().clone(),), allow_unused_input=True, **_beside_other_threads()
            )
        step: Step = encoder.__dict__.pop("forward")
        put_back()
        _check(encoder, step, images, put_back)
        return step
    finally:
        encoder.__dict__.pop("forward", None)
        put_back()


@torch.no_grad()
def _check(encoder: nn.Module, step: Step, images: Tensor, put_back: Callable[[], None]) -> None:
    """Raises if the same batch gives something else: an encoder that decides in Python is frozen."""
    computed = encoder(images).float()
    put_back()
    replayed = step(images).float()
    difference = (replayed - computed).norm() / computed.norm().clamp_min(1e-12)
    if not bool(difference < CLOSE):
        raise RuntimeError(f"what is replayed differs by {float(difference):.2g}")


def _beside_other_threads() -> dict[str, Any]:
    """Threads that load images may go on with what they do on the GPU."""
    known = inspect.signature(torch.cuda.make_graphed_callables).parameters
    return {"capture_error_mode": "thread_local"} if "capture_error_mode" in known else {}


def _kind(images: Tensor) -> tuple[Any, ...]:
    """What batches must have in common."""
    device = images.device.type
    dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None
    return images.shape, images.dtype, images.device, images.stride(), dtype

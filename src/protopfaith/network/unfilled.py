"""Building a network whose weights are about to be read from a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from protopfaith.errors import ProtoPFaithError

MAKE = {torch.empty, torch.empty_like, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn}
DRAW = {Tensor.normal_, Tensor.uniform_}
INITIALIZE = {nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_}
"""Those that torch lets us replace; the others of `nn.init` draw by `DRAW`."""
SPARE = 2**26
"""How many numbers a network may make beyond its own: say, the classifier that an encoder leaves out."""


class Unfilled(TorchFunctionMode):
    """In this context weights are made but not drawn, and no more of them than `expected` accounts for.

    Drawing takes longer than reading, and a header may describe a network far larger than its file.

    Args:
        expected: how many numbers the file has
    """

    def __init__(self, expected: int):
        super().__init__()
        self.most = 2 * expected + SPARE
        self.made = 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func in INITIALIZE:
            return args[0] if args else kwargs["tensor"]
        if func in DRAW:  # one number for all: initializers that draw until all are within bounds must end
            return args[0].copy_(func(args[0].new_empty(()), *args[1:], **kwargs))
        result = func(*args, **kwargs)
        if func in MAKE and result.device.type != "meta":
            self._count(result.numel())
        return result

    def _count(self, numbers: int) -> None:
        self.made += numbers
        if self.made > self.most:
            raise ProtoPFaithError(
                "its network is much larger than the file, which lacks most of the weights"
            )

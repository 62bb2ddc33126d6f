"""The graph of a network, while other threads go on using theirs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from torch import fx, nn

_one_at_a_time = threading.Lock()


class _OwnThread(fx.Tracer):
    """Tracing replaces what calling any module does, in all threads: those of others are called as ever."""

    def __init__(self) -> None:
        super().__init__()
        self.thread = threading.get_ident()

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if threading.get_ident() != self.thread:
            return forward(*args, **kwargs)
        return super().call_module(m, forward, args, kwargs)


def trace(module: nn.Module) -> fx.GraphModule:
    """What `torch.fx.symbolic_trace` gives, without disturbing other threads.

    Args:
        module: anything that `torch.fx` can trace

    >>> import torch
    >>> float(trace(nn.Hardtanh(0, 1))(torch.tensor(3.0)))
    1.0
    """
    with _one_at_a_time:  # the second to begin would put back what the first had replaced
        tracer = _OwnThread()
        graph = tracer.trace(module)
    return fx.GraphModule(tracer.root, graph, type(module).__name__)

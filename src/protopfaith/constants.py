"""Small tensors that every batch or game needs, made once for each device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

P = ParamSpec("P")
T = TypeVar("T")


def remembered(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """`lru_cache` for functions that make tensors on the device among their arguments.

    Where several images are explained at once, each has a stream of a GPU, and what one stream is still
    making is not there for another: so what is remembered is made in a stream of its own, for which alone
    is waited. Its memory is not used anew before all who took it are done.

    >>> @remembered(8)
    ... def first_numbers(count: int, device: torch.device) -> Tensor:
    ...     return torch.arange(count, device=device)
    >>> first_numbers(3, torch.device("cpu")) is first_numbers(3, torch.device("cpu"))
    True
    """

    def decorate(make: Callable[P, T]) -> Callable[P, T]:
        def anew(*args: Any, **kwargs: Any) -> tuple[T, torch.device | None]:
            device = next((one for one in args if _is_gpu(one)), None)
            if device is None:
                return make(*args, **kwargs), None
            own = _own_stream(device)
            with torch.cuda.stream(own):
                found = make(*args, **kwargs)
            own.synchronize()
            return found, device

        made: Callable[..., tuple[T, torch.device | None]] = lru_cache(maxsize=most)(anew)

        @wraps(make)
        def get(*args: P.args, **kwargs: P.kwargs) -> T:
            found, device = made(*args, **kwargs)
            if device is not None:
                for tensor in _tensors(found):
                    if tensor.is_cuda:
                        tensor.record_stream(torch.cuda.current_stream(device))
            return found

        return get

    return decorate


def _is_gpu(argument: object) -> bool:
    return isinstance(argument, torch.device) and argument.type == "cuda"


@lru_cache
def _own_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)


def _tensors(found: object) -> Iterator[Tensor]:
    if isinstance(found, Tensor) and found.is_sparse:
        yield from (found._indices(), found._values())
    elif isinstance(found, Tensor):
        yield found
    elif isinstance(found, tuple):
        for part in found:
            yield from _tensors(part)
    elif is_dataclass(found):
        for field in fields(found):
            yield from _tensors(getattr(found, field.name))


@remembered(256)
def constant(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """The values as a tensor that callers must not change.

    >>> constant((1.0, 2.0), torch.float32, torch.device("cpu")).tolist()
    [1.0, 2.0]
    """
    with torch.inference_mode(False):  # it may be needed for gradients later
        return torch.tensor(values, dtype=dtype, device=device)

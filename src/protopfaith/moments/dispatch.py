"""The table from torch functions to moment rules, and the error where it has no rule."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar

import torch
from torch import nn

from protopfaith.arguments import shown
from protopfaith.errors import ProtoPFaithError, is_out_of_memory
from protopfaith.files import reason

Rule = Callable[..., Any]
Method = TypeVar("Method", bound=Callable[..., Any])
RULES: dict[Callable, Rule] = {}
"""Every torch function that random variables can pass through, with its rule."""

ATTENTION = ("multi_head_attention_forward", "scaled_dot_product_attention", "softmax", "matmul", "bmm")
"""Functions of attention: products of random variables that depend on each other, whatever rule each has."""
SAMPLING = "use a sampling estimator (default, owen, permutation, kernel), which takes any network as it is"

_NAMESPACES = (torch, torch.Tensor, torch.nn.functional, torch.special)


def rule(*functions: Callable | str) -> Callable[[Rule], Rule]:
    """Registers a rule for torch functions, or for all forms of a name.

    A name stands for the function in `torch`, `torch.nn.functional` and `torch.special`, the method,
    and the in-place forms. The rule receives the torch function that was called, then its arguments, of
    which at least one is a `Gaussian`, and returns a Gaussian; in-place forms take care of
    themselves.

    Args:
        functions: torch functions, or names that stand for all of their forms

    >>> from protopfaith.moments import Gaussian
    >>> @rule("deg2rad")
    ... def deg2rad(function, x):
    ...     "mean = m pi / 180; variance = v (pi / 180)^2"
    ...     return Gaussian(function(x.mean), x.variance * (torch.pi / 180) ** 2)
    >>> Gaussian(torch.tensor([180.0]), 1.0).deg2rad().mean
    tensor([3.1416])
    >>> for form in forms("deg2rad"):
    ...     del RULES[form]
    """

    found: list[Callable] = []
    for entry in functions:
        if not isinstance(entry, str) and not callable(entry):
            raise ProtoPFaithError(f"A rule is for torch functions or their names, not for {shown(entry)}.")
        found += forms(entry) if isinstance(entry, str) else (entry,)

    def register(function: Rule) -> Rule:
        for form in found:
            RULES[form] = function
        return function

    return register


def forms(name: str) -> Iterator[Callable]:
    """All torch functions and methods that `name` stands for."""
    names = [name] if name.startswith("__") else [name, f"{name}_"]
    found = [getattr(space, n) for space in _NAMESPACES for n in names if callable(getattr(space, n, None))]
    if not found:
        raise ValueError(f"torch has no function or method named {name!r}")
    yield from dict.fromkeys(found)


def run(function: Callable, args: tuple, kwargs: dict[str, Any] | None) -> Any:
    """Calls the rule of `function`; an in-place form also changes its first argument."""
    kwargs = dict(kwargs or {})
    found = RULES.get(function)
    if found is None:
        raise missing_rule(function)
    in_place = bool(kwargs.pop("inplace", False)) or _is_in_place(function)
    if kwargs.pop("out", None) is not None:  # a tensor cannot hold random variables
        raise missing_rule(function, "out")
    try:
        result = found(function, *args, **kwargs)
    except Exception as error:
        unknown = None
        if isinstance(error, TypeError):
            unknown = _unknown_argument(found, function, args, kwargs)
        if unknown is not None:
            raise missing_rule(function, unknown) from error
        if is_meant(error) or not found.__module__.startswith(f"{__package__}."):
            raise  # whoever writes a rule wants to see where it fails
        raise not_applicable(name_of(function), error) from error
    return args[0].become(result, name_of(function)) if in_place else result


def is_meant(error: Exception) -> bool:
    """Whether an exception is for those further up: a sentence of ours, or less at a time would do."""
    return isinstance(error, ProtoPFaithError) or is_out_of_memory(error)


def not_applicable(operation: str, error: Exception) -> ProtoPFaithError:
    """What stands for an exception of torch's, or of Python's, about arguments or their shapes."""
    return ProtoPFaithError(
        f"{operation} cannot be applied to these random variables ({reason(error)}); check what it is given, "
        "and the shapes."
    )


def in_a_sentence(method: Method) -> Method:
    """A method whose exceptions about its arguments are sentences of ours; it costs nothing but a call."""

    @wraps(method)
    def checked(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except Exception as error:
            if is_meant(error):
                raise
            raise not_applicable(method.__qualname__, error) from error

    return checked  # type: ignore[return-value]


def _unknown_argument(found: Rule, function: Callable, args: tuple, kwargs: dict[str, Any]) -> str | None:
    """An argument that the function may have but its rule does not; None where the rule takes all of them."""
    signature = inspect.signature(found)
    try:
        signature.bind(function, *args, **kwargs)
    except TypeError as error:
        return next((name for name in kwargs if name not in signature.parameters), str(error))
    return None


def _is_in_place(function: Callable) -> bool:
    name = getattr(function, "__name__", "")
    if name.startswith("__"):
        return name.startswith("__i") and name not in ("__invert__", "__int__", "__index__")
    return name.endswith("_")


def name_of(function: Callable) -> str:
    """As a user would write it: `torch.nn.functional.softmax`."""
    return torch.overrides.resolve_name(function) or getattr(function, "__qualname__", repr(function))


def missing_rule(function: Callable, argument: str | None = None) -> ProtoPFaithError:
    """The error of a function that has no rule, or none for one of its arguments."""
    name = name_of(function)
    short = getattr(function, "__name__", "operation").strip("_")
    if short in ATTENTION:
        return ProtoPFaithError(
            f"There is no moment rule for attention ({name}, called from {calling_module()}), so dasp and "
            f"moment_path cannot explain this network; {SAMPLING}."
        )
    return ProtoPFaithError(
        f"There is no moment rule for {name}{'' if argument is None else f' with the argument {argument}'}, "
        f"called from {calling_module()}; {SAMPLING}, or write a rule and register it:\n\n"
        f"    @protopfaith.moments.rule({name})\n"
        f"    def {short}(function, x, *args, **kwargs):\n"
        f"        return protopfaith.moments.Gaussian(mean, variance)  # both from x.mean and x.variance\n"
    )


def calling_module() -> str:
    """The path of the module whose code is running, such as `layer3.0.act`, found on the call stack."""
    modules: list[nn.Module] = []
    frame = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self")
        if isinstance(owner, nn.Module) and (not modules or modules[-1] is not owner):
            modules.append(owner)
        frame = frame.f_back  # type: ignore[assignment]
    if not modules:
        return "outside any module"
    inner, outer = modules[0], modules[-1]
    path = next((path for path, module in outer.named_modules() if module is inner), "")
    return f"{path} ({type(inner).__name__})" if path else type(inner).__name__

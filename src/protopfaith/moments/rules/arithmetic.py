"""Sums, differences, products and multiples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from protopfaith.moments.dispatch import missing_rule, rule
from protopfaith.moments.gaussian import Gaussian, constant


@rule("add", "__add__", "__radd__", "__iadd__")
def add(function: Callable, a: Any, b: Any, *, alpha: float = 1) -> Gaussian:
    """y = a + b: means add; variances of independent variables add, and common factors add before
    squaring."""
    if a is b:
        return multiply(function, a, 1 + alpha)
    b = multiply(function, b, alpha) if alpha != 1 else b
    if isinstance(a, Gaussian) and isinstance(b, Gaussian):
        return _sum_of(a, b)
    random, fixed = (a, b) if isinstance(a, Gaussian) else (b, a)
    return random.scale(lambda m: m + fixed, lambda f: _like(f, fixed), lambda v: _like(v, fixed))


@rule("sub", "subtract", "__sub__", "__isub__")
def subtract(function: Callable, a: Any, b: Any, *, alpha: float = 1) -> Gaussian:
    """y = a - b: means subtract; variances add."""
    return add(function, a, b, alpha=-alpha)


@rule("rsub", "__rsub__")
def subtract_from(function: Callable, b: Any, a: Any, *, alpha: float = 1) -> Gaussian:
    """y = a - b with the arguments exchanged."""
    return add(function, a, b, alpha=-alpha)


@rule("neg", "negative", "__neg__")
def negative(function: Callable, input: Gaussian) -> Gaussian:
    """y = -x: mean = -m; variance = v."""
    return input.scale(torch.neg, torch.neg, lambda v: v)


@rule("mul", "multiply", "__mul__", "__rmul__", "__imul__")
def multiply(function: Callable, a: Any, b: Any) -> Any:
    """y = c x: mean = c m; variance = c^2 v. Of two independent variables: mean = m1 m2, variance = m1^2 v2
    + m2^2 v1 + v1 v2."""
    if a is b and isinstance(a, Gaussian):
        return square(function, a)
    if isinstance(a, Gaussian) and isinstance(b, Gaussian):
        return _product(a, b)
    if not isinstance(a, Gaussian) and not isinstance(b, Gaussian):
        return a * b
    random, c = (a, b) if isinstance(a, Gaussian) else (b, a)
    return random.scale(lambda m: m * c, lambda f: f * c, lambda v: v * (c * c))


@rule("div", "divide", "true_divide", "__truediv__", "__itruediv__")
def divide(function: Callable, a: Any, b: Any) -> Gaussian:
    """y = x / c: mean = m / c; variance = v / c^2."""
    if isinstance(b, Gaussian):
        raise missing_rule(function)
    return multiply(function, a, 1 / b)


@rule("square")
def square(function: Callable, input: Gaussian) -> Gaussian:
    """y = x^2: mean = m^2 + v; variance = 2 v^2 + 4 m^2 v; gain 2 m."""
    mean, variance = input.moments
    factors = None if input.factors is None else 2 * mean * input.factors
    return Gaussian(mean.square() + variance, 2 * variance * (variance + 2 * mean.square()), factors)


@rule("pow", "__pow__", "__ipow__")
def power(function: Callable, input: Any, exponent: Any) -> Gaussian:
    """y = x^2, as square, and y = x^1; other powers have no rule."""
    if isinstance(exponent, Gaussian) or exponent not in (1, 2):
        raise missing_rule(function)
    return square(function, input) if exponent == 2 else input


def _sum_of(a: Gaussian, b: Gaussian) -> Gaussian:
    mean = a.moments[0] + b.moments[0]
    if a.factors is None and b.factors is None:
        return _shaped(mean, a.variance + b.variance, None)
    a, b = constant(a, like=b), constant(b, like=a)
    factors = _together(a.factors, b.factors)
    return _shaped(mean, a.own_variance + b.own_variance + factors.square().sum(0), factors)


def _product(a: Gaussian, b: Gaussian) -> Gaussian:
    (m1, v1), (m2, v2) = a.moments, b.moments
    variance = m1.square() * v2 + m2.square() * v1 + v1 * v2
    factors = None
    if a.factors is not None or b.factors is not None:
        first = 0 if a.factors is None else a.factors * m2
        factors = first if b.factors is None else first + b.factors * m1
    return _shaped(m1 * m2, variance, factors)  # type: ignore[arg-type]


def _together(a: Tensor | None, b: Tensor | None) -> Tensor:
    if a is None or b is None:
        return a if b is None else b  # type: ignore[return-value]
    return a + b


def _like(x: Tensor, fixed: Any) -> Tensor:
    """In the shape that a sum with ``fixed`` has."""
    return x if not isinstance(fixed, Tensor) else x.expand(torch.broadcast_shapes(x.shape, fixed.shape))


def _shaped(mean: Tensor, variance: Tensor, factors: Tensor | None) -> Gaussian:
    """After broadcasting: every part in the mean's shape."""
    if factors is not None:
        factors = torch.broadcast_to(factors, (len(factors), *mean.shape))
    return Gaussian(mean, torch.broadcast_to(variance, mean.shape), factors)

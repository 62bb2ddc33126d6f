"""Sums, differences, products and multiples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from protopfaith.moments.dispatch import missing_rule, rule
from protopfaith.moments.gaussian import Gaussian, aligned, common_shape


@rule("add", "__add__", "__radd__", "__iadd__")
def add(function: Callable, input: Any, other: Any, *, alpha: float = 1) -> Gaussian:
    """y = a + b: means add; variances of independent variables add, and common factors add before
    squaring."""
    if input is other:
        return multiply(function, input, 1 + alpha)
    other = multiply(function, other, alpha) if alpha != 1 else other
    if isinstance(input, Gaussian) and isinstance(other, Gaussian):
        return _sum_of(input, other)
    random, fixed = (input, other) if isinstance(input, Gaussian) else (other, input)
    _check_size(random, fixed)
    return random.scale(lambda m: m + fixed, lambda f: _like(f, fixed), lambda v: _like(v, fixed))


@rule("sub", "subtract", "__sub__", "__isub__")
def subtract(function: Callable, input: Any, other: Any, *, alpha: float = 1) -> Gaussian:
    """y = a - b: means subtract; variances add."""
    return add(function, input, other, alpha=-alpha)


@rule("rsub", "__rsub__")
def subtract_from(function: Callable, input: Any, other: Any, *, alpha: float = 1) -> Gaussian:
    """y = b - a: the arguments exchanged."""
    return add(function, other, input, alpha=-alpha)


@rule("neg", "negative", "__neg__")
def negative(function: Callable, input: Gaussian) -> Gaussian:
    """y = -x: mean = -m; variance = v."""
    return input.scale(torch.neg, torch.neg, lambda v: v)


@rule("mul", "multiply", "__mul__", "__rmul__", "__imul__")
def multiply(function: Callable, input: Any, other: Any) -> Any:
    """y = c x: mean = c m; variance = c^2 v. Of two independent variables: mean = m1 m2, variance = m1^2 v2
    + m2^2 v1 + v1 v2."""
    if input is other and isinstance(input, Gaussian):
        return square(function, input)
    if isinstance(input, Gaussian) and isinstance(other, Gaussian):
        return _product(input, other)
    if not isinstance(input, Gaussian) and not isinstance(other, Gaussian):
        return input * other
    random, c = (input, other) if isinstance(input, Gaussian) else (other, input)
    _check_size(random, c)
    return random.scale(lambda m: m * c, lambda f: f * c, lambda v: v * (c * c))


@rule("div", "divide", "true_divide", "__truediv__", "__itruediv__")
def divide(function: Callable, input: Any, other: Any) -> Gaussian:
    """y = x / c: mean = m / c; variance = v / c^2."""
    if isinstance(other, Gaussian):
        raise missing_rule(function)
    return multiply(function, input, 1 / other)


@rule("square")
def square(function: Callable, input: Gaussian) -> Gaussian:
    """y = x^2: mean = m^2 + v; variance = 2 v^2 + 4 m^2 v; gain 2 m."""
    mean, variance = input.moments
    factors = None if input.factors is None else 2 * mean * input.factors
    return Gaussian.trusted(mean.square() + variance, 2 * variance * (variance + 2 * mean.square()), factors)


@rule("pow", "__pow__", "__ipow__")
def power(function: Callable, input: Any, exponent: Any) -> Gaussian:
    """y = x^2, as square, and y = x^1; other powers have no rule."""
    if isinstance(exponent, Gaussian) or exponent not in (1, 2):
        raise missing_rule(function)
    return square(function, input) if exponent == 2 else input


def _sum_of(a: Gaussian, b: Gaussian) -> Gaussian:
    a, b = aligned(a, b)
    mean = a.moments[0] + b.moments[0]
    if a.factors is None or b.factors is None:
        return Gaussian.trusted(mean, a.variance + b.variance)
    factors = a.factors + b.factors
    return Gaussian.trusted(mean, a.own_variance + b.own_variance + factors.square().sum(0), factors)


def _product(a: Gaussian, b: Gaussian) -> Gaussian:
    a, b = aligned(a, b)
    (m1, v1), (m2, v2) = a.moments, b.moments
    variance = m1.square() * v2 + m2.square() * v1 + v1 * v2
    if a.factors is None or b.factors is None:
        return Gaussian.trusted(m1 * m2, variance)
    return Gaussian.trusted(m1 * m2, variance, a.factors * m2 + b.factors * m1)


def _check_size(random: Gaussian, fixed: Any) -> None:
    """Raises where both together are more than any memory holds."""
    if isinstance(fixed, Tensor):
        common_shape(random, fixed)


def _like(x: Tensor, fixed: Any) -> Tensor:
    """In the shape that a sum with `fixed` has."""
    return x if not isinstance(fixed, Tensor) else x.expand(torch.broadcast_shapes(x.shape, fixed.shape))

"""Activations: rectifiers in closed form, smooth ones by quadrature.

Common factors pass through by the gain E g'(x): for jointly Gaussian variables Cov(g(x), e) = E g'(x)
Cov(x, e), exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from protopfaith.moments import clipping, formulas, pieces
from protopfaith.moments.dispatch import missing_rule, rule
from protopfaith.moments.elementwise import closed_form
from protopfaith.moments.gaussian import Gaussian
from protopfaith.moments.normal import cdf, signed_deviations
from protopfaith.moments.rules.maxima import maximum, minimum
from protopfaith.moments.smooth import Asymptote, relu_moments, smooth, step, step_moments

STEP = Asymptote(step, step_moments, reach=20.0)
RELU = Asymptote(torch.relu, relu_moments, reach=20.0)
RELU_CLOSE = Asymptote(torch.relu, relu_moments, reach=6.0)


@rule("relu")
def relu(function: Callable, input: Gaussian) -> Gaussian:
    """mean = m Phi(a) + s phi(a); variance = s^2 (P + a^2 P Q + a phi (Q - P) - phi^2), a = m/s, P =
    Phi(a), Q = 1 - P."""
    return _activate(input, formulas.relu, formulas.relu_slopes, _positive)


@rule("leaky_relu")
def leaky_relu(function: Callable, input: Gaussian, negative_slope: float = 0.01) -> Gaussian:
    """y = c x + (1 - c) relu(x): variance = c^2 v + (1 - c)^2 Var relu + 2 c (1 - c) Phi(a) v."""
    return _activate(
        input,
        formulas.leaky_relu,
        formulas.leaky_relu_slopes,
        lambda m, v: negative_slope + (1 - negative_slope) * _positive(m, v),
        float(negative_slope),
    )


@rule("relu6")
def relu6(function: Callable, input: Gaussian) -> Gaussian:
    """clamp to [0, 6]."""
    return clamp(function, input, 0.0, 6.0)


@rule("hardtanh")
def hardtanh(function: Callable, input: Gaussian, min_val: float = -1.0, max_val: float = 1.0) -> Gaussian:
    """clamp to [min_val, max_val]; ReLU1 is hardtanh to [0, 1]."""
    return clamp(function, input, min_val, max_val)


@rule("clamp", "clip")
def clamp(function: Callable, input: Gaussian, min: Any = None, max: Any = None) -> Gaussian:
    """y = min(max(x, low), high): the paper's closed form (appendix A.1), measured from the nearer bound."""
    if any(isinstance(bound, Tensor | Gaussian) and bound.numel() > 1 for bound in (min, max)):
        raise missing_rule(function)
    low, high = (None if bound is None else float(bound) for bound in (min, max))
    if low is None and high is None:
        return input
    if high is None:
        return maximum(function, input, low)
    if low is None:
        return minimum(function, input, high)
    if low >= high:
        return input * 0.0 + high
    return _activate(
        input, clipping.clip, clipping.clip_slopes, lambda m, v: _between(m, v, low, high), low, high
    )


@rule("clamp_min")
def clamp_min(function: Callable, input: Any, min: Any) -> Gaussian:
    """y = max(x, low), as maximum with a constant."""
    return maximum(function, input, min)


@rule("clamp_max")
def clamp_max(function: Callable, input: Any, max: Any) -> Gaussian:
    """y = min(x, high), as minimum with a constant."""
    return minimum(function, input, max)


@rule("sigmoid", "expit")
def sigmoid(function: Callable, input: Gaussian) -> Gaussian:
    """E g and Var g by quadrature, to 1e-5 of s and s^2."""
    return _smooth(torch.sigmoid, STEP, input)


@rule("hardsigmoid")
def hardsigmoid(function: Callable, input: Gaussian) -> Gaussian:
    """y = clamp(x / 6 + 1/2) to [0, 1]."""
    return clamp(function, input / 6 + 0.5, 0.0, 1.0)


@rule("hardswish")
def hardswish(function: Callable, input: Gaussian) -> Gaussian:
    """y = x clamp(x + 3, 0, 6) / 6, in closed form: a parabola between -3 and 3, 0 below, x above."""
    return _by_slope(pieces.hardswish, input)


@rule("tanh")
def tanh(function: Callable, input: Gaussian) -> Gaussian:
    """y = 2 sigmoid(2 x) - 1."""
    return 2 * sigmoid(function, 2 * input) - 1


@rule("silu")
def silu(function: Callable, input: Gaussian) -> Gaussian:
    """y = x sigmoid(x), by quadrature, to 1e-5 of s and s^2."""
    return _smooth(F.silu, RELU, input)


@rule("gelu")
def gelu(function: Callable, input: Gaussian, approximate: str = "none") -> Gaussian:
    """y = x Phi(x), by quadrature, to 1e-5 of s and s^2."""
    return _smooth(lambda x: F.gelu(x, approximate=approximate), RELU_CLOSE, input)


def _activate(
    x: Gaussian,
    moments: Callable,
    slopes: Callable,
    gain: Callable[[Tensor, Tensor], Tensor],
    *numbers: float,
) -> Gaussian:
    mean, variance = closed_form(moments, slopes, *x.moments, numbers=numbers)
    factors = None if x.factors is None else x.factors * gain(*x.moments)
    return Gaussian.trusted(mean, variance, factors)


def _smooth(g: Callable[[Tensor], Tensor], asymptote: Asymptote, x: Gaussian) -> Gaussian:
    return _by_slope(lambda m, v: smooth(g, asymptote, m, v), x)


def _by_slope(moments: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]], x: Gaussian) -> Gaussian:
    """An activation whose formula autograd follows: the gain of common factors is the derivative of the
    mean."""
    mean, variance = moments(*x.moments)
    if x.factors is None:
        return Gaussian.trusted(mean, variance)
    wanted = torch.is_grad_enabled() and x.requires_grad
    with torch.enable_grad():
        point = x.moments[0] if wanted else x.moments[0].detach().requires_grad_()
        gains = torch.autograd.grad(moments(point, x.variance)[0].sum(), point, create_graph=wanted)
    return Gaussian.trusted(mean, variance, x.factors * gains[0])


def _positive(mean: Tensor, variance: Tensor) -> Tensor:
    """P(x > 0)"""
    return cdf(signed_deviations(mean, variance))


def _between(mean: Tensor, variance: Tensor, low: float, high: float) -> Tensor:
    """P(low < x < high)"""
    return cdf(signed_deviations(mean - low, variance)) - cdf(signed_deviations(mean - high, variance))

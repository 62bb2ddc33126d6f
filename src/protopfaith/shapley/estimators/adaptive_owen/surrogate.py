"""A surrogate of the game whose Shapley values are known in closed form.

Gaussian process regression on masks: with x~ = x - p (p = s/n the mask's density) and C the covariance
that players' effects are expected to have, the kernel is

    k(x, y) = exp(-(p_x - p_y)^2 / 2 w^2) * (L + g L^2),   L = x~' C y~

so main effects and pairwise interactions that change with density. All outputs share the kernel, hence one
factorization. It is never trusted: what it leaves over is sampled, so it lowers variance and adds no bias.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from protopfaith.constants import constant, remembered
from protopfaith.shapley.densities import hat_functions
from protopfaith.shapley.estimators.adaptive_owen.alike import Curve, Inverse, missed_share
from protopfaith.shapley.estimators.adaptive_owen.pairs import Pairing
from protopfaith.shapley.estimators.adaptive_owen.triangular import inverse_of_lower
from protopfaith.shapley.transfer import read_later, side_by_side

Setting = tuple[float, float]

WIDTH = 0.3  # w, over which effects change with density
# (g, noise over signal) to choose from, per output, by the error on left-out samples.
SETTINGS = ((0.0, 0.5), (1.0, 0.5), (0.0, 0.05), (1.0, 0.05), (0.0, 0.005), (1.0, 0.005))
TRIAL = 512  # samples that settings are compared on
WORTH = 0.05  # by how much a second one must lower the error on these to be fitted to all samples, too


@dataclass(frozen=True)
class Surrogate:
    """v^(x) = sum_k exp(...) * (linear_k L_k + square_k L_k^2) over the samples k it was fitted to."""

    loadings: Tensor  # (m, n): C x~_k, centered over the players
    densities: Tensor  # (m,)
    linear: Tensor  # (m, outputs)
    square: Tensor  # (m, outputs)
    curve: Tensor | None = None  # (knots, outputs): a function of density, which has no values; see `Curve`

    def __call__(self, masks: Tensor) -> Tensor:
        """Predictions `(b, outputs)` for masks `(b, n)`."""
        x = masks.to(self.loadings.dtype)
        p = x.mean(1)
        product = x @ self.loadings.T  # of x - p, too: loadings sum to zero over the players
        weighted = density_kernel(p, self.densities) * product
        found = weighted @ self.linear + (weighted * product) @ self.square
        return found if self.curve is None else found + hat_functions(p) @ self.curve

    def shapley(self) -> Tensor:
        """The part of its Shapley values that its sizes 1 ... n-1 make, `(outputs, n)` in float64.

        With players drawn without replacement and u summing to zero, the functional
        E[v (x_i - p)] / (p (1 - p)) of u'x is u_i (f1 - f2) / (p (1 - p)), and of (u'x)^2 it is
        (u_i^2 - mean u^2) (f1 - 3 f2 + 2 f3) / (p (1 - p)), where fk is the chance that k given players
        are all in.
        """
        f1, of_linear, of_square = _functionals(self.loadings.shape[1], self.loadings.device)
        kernel = density_kernel(self.densities.double(), f1)
        first, second = kernel @ of_linear, kernel @ of_square
        u = self.loadings
        values = (self.linear * first[:, None].to(u)).T @ u
        squares = u.square()
        squares = squares - squares.mean(1, keepdim=True)
        return (values + (self.square * second[:, None].to(u)).T @ squares).double()


@dataclass(frozen=True)
class CrossFit:
    """One surrogate per fold, and what is left over of each sample (m, outputs) by that of its own fold,
    fitted without the sample; by how much the variance of its mean is larger than it seems (outputs,)."""

    models: list[Surrogate]
    left: Tensor
    mutual: Tensor
    improved: Callable[[], CrossFit | None]  # with a second setting, where that pays; waits for a GPU


def cross_fit(
    masks: Tensor,
    residuals: Tensor,
    fold: Tensor,
    priors: Sequence[Tensor],
    *,
    correlation: Tensor | None,
    settings: Sequence[Setting] = SETTINGS,
    pairing: Pairing | None = None,
    alike: bool = False,
    shared: Tensor | None = None,
) -> CrossFit:
    """Fits a surrogate for each fold, by the setting that does best on some samples.

    Args:
        masks: (m, n).
        residuals: (m, outputs), what is to be predicted.
        fold: number of each sample's fold, (m,).
        priors: for each fold the expected square of each player's effect (n,), as other folds tell it.
        correlation: between players' effects.
        settings: to choose from. Outputs that none predicts keep a surrogate of zero.
        pairing: which samples are complements of each other; none by default.
        alike: whether many coalitions are alike, so that a curve over density is to be fitted, too.
        shared: (m, m), what any two samples count by in the mean of which the variance is to be known, see
            `missed_share`; left out where hardly any two coalitions are alike.
    """
    pairing = pairing or Pairing.none(len(masks), masks.device)
    data = _Data.of(masks, residuals, pairing, alike, shared)
    correlation = None if correlation is None else correlation.float()
    folds = _Folds(data, fold, [_products(data.x, prior, correlation) for prior in priors])
    nothing = [data.nothing()] * len(priors)
    if not settings:
        return folds.summary(nothing, lambda: None)
    first, second, worthwhile = _promising(data.some(TRIAL), priors[0], correlation, settings)
    best = folds.better(nothing, first)

    def improved() -> CrossFit | None:
        return folds.summary(folds.better(best, second), lambda: None) if worthwhile() else None

    return folds.summary(best, improved)


@dataclass(frozen=True)
class _Folds:
    """Samples to learn from, parted into folds."""

    data: _Data
    fold: Tensor
    products: list[tuple[Tensor, Tensor]]  # see `_products`, by the prior of each fold

    def better(self, fits: Sequence[_Fit], setting: Tensor) -> list[_Fit]:
        """For each fold and output the fit so far, or that by another setting (1, 2).

        A factorization leaves most of a GPU idle, but is slower in a batch: so each has its own stream.
        """

        def better(fit: _Fit, product: Tensor) -> _Fit:
            return fit.or_better(self.data.regression(product, setting).first())

        pairs = zip(fits, self.products, strict=True)
        return side_by_side([partial(better, fit, product) for fit, (_, product) in pairs], setting.device)

    def summary(self, fits: Sequence[_Fit], improved: Callable[[], CrossFit | None]) -> CrossFit:
        left = fits[0].left
        for number, fit in enumerate(fits[1:], 1):
            left = torch.where((self.fold == number)[:, None], fit.left, left)
        pairs = zip(fits, self.products, strict=True)
        models = [self.data.surrogate(fit, loadings) for fit, (loadings, _) in pairs]
        mutual = torch.stack([fit.mutual for fit in fits]).mean(0)
        return CrossFit(models, (left * self.data.spread).double(), mutual, improved)


def _promising(
    data: _Data, prior: Tensor, correlation: Tensor | None, settings: Sequence[Setting]
) -> tuple[Tensor, Tensor, Callable[[], bool]]:
    """The setting that does best on some samples, the one that adds most to it, each (1, 2), and whether that
    is worth a fit: different outputs may want different ones.

    The first is fitted in any case: what tells nothing of a few samples may tell something of many. So a GPU
    need not wait until the CPU knows which one it is.
    """
    choice = torch.stack([constant(x, data.x.dtype, data.x.device) for x in zip(*settings, strict=True)], 1)
    _, product = _products(data.x, prior, correlation)
    errors = data.regression(product, choice).error / data.nothing().error
    errors = errors.nan_to_num(1.0).clamp(1e-12, 1.0).log()  # at most that of no surrogate
    first = errors.mean(1).argmin(0, keepdim=True)
    gains = (errors[first] - torch.minimum(errors, errors[first])).mean(1)
    most, second = gains.max(0, keepdim=True)
    return choice[first], choice[second], read_later(most[0] >= WORTH)


@dataclass(frozen=True)
class _Data:
    """Samples to learn from, all in float32."""

    x: Tensor  # (m, n): membership minus density
    p: Tensor  # (m,): density
    residuals: Tensor  # (m, outputs), of variance one: what is left over of a sample without a surrogate
    targets: Tensor  # (m, outputs): what is to be predicted
    spread: Tensor  # (outputs,): what they were divided by
    density: Tensor  # (m, m): the kernel's part that knows densities alone
    noise: Tensor  # (m,): how variance changes with density
    pairing: Pairing
    curve: Curve | None  # which few players share with the surrogate
    shared: Tensor | None  # (m, m), see `cross_fit`

    @staticmethod
    def of(masks: Tensor, residuals: Tensor, pairing: Pairing, alike: bool, shared: Tensor | None) -> _Data:
        x, p = centered(masks, torch.float32)
        spread = residuals.std(0).clamp_min(1e-30).float()
        given = residuals.float() / spread
        curve = Curve.of(p) if alike else None
        targets = given if curve is None else given * curve.kept[:, None]
        kernel, noise = density_kernel(p, p), noise_shape(p, residuals)
        return _Data(x, p, given, targets, spread, kernel, noise, pairing, curve, shared)

    def some(self, most: int) -> _Data:
        """The first samples."""
        scale = self.targets[:most].square().mean(0).sqrt().clamp_min(1e-30)
        first = {name: getattr(self, name)[:most] for name in ("x", "p", "noise")}
        scaled = {name: getattr(self, name)[:most] / scale for name in ("residuals", "targets")}
        return replace(
            self,
            **first,
            **scaled,
            density=self.density[:most, :most],
            pairing=self.pairing.first(len(first["x"])),
            curve=None if self.curve is None else self.curve.first(most),
            shared=None,
        )

    def nothing(self) -> _Fit:
        """A surrogate of zero."""
        zero = torch.zeros_like(self.residuals)
        curve = None if self.curve is None else zero.new_zeros(self.curve.hats.shape[1], zero.shape[1])
        return _Fit(zero, zero, self.residuals, torch.ones_like(zero[0]), curve, self.pairing)

    def surrogate(self, fit: _Fit, loadings: Tensor) -> Surrogate:
        loadings = loadings - loadings.mean(1, keepdim=True)
        curve = None if fit.curve is None else fit.curve * self.spread
        return Surrogate(loadings, self.p, fit.linear * self.spread, fit.square * self.spread, curve)

    def regression(self, product: Tensor, settings: Tensor) -> _Fit:
        """Gaussian process regression by each of the settings (k, 2); what is left of a sample without it is
        its weight over the inverse's diagonal, or for a pair over their block. Not a number where the kernel
        is singular to rounding."""
        gain, ratio = settings.T[..., None, None]
        kernel = self.density * torch.addcmul(product, gain, product.square())
        size = kernel.diagonal(dim1=1, dim2=2).mean(1)[:, None, None].clamp_min(1e-30)
        kernel = kernel / size
        kernel.diagonal(dim1=1, dim2=2).add_(ratio[..., 0] * self.noise)
        root, failed = torch.linalg.cholesky_ex(kernel)
        inverse_root = inverse_of_lower(root)
        beyond = None if self.curve is None else self.curve.beside(inverse_root, self.targets)
        inverse = Inverse(inverse_root, None if beyond is None else beyond.explained)
        weights = inverse.times(self.targets)
        weights = torch.where(failed[:, None, None] == 0, weights, torch.nan)
        left = self.pairing.without_each(weights, inverse.diagonal(), inverse.diagonal)
        mutual = torch.ones_like(left[:, 0])
        if self.shared is not None:
            found = zip(inverse.whole(), left, strict=True)
            mutual = torch.stack([missed_share(*some, self.shared, self.pairing.partner) for some in found])
        curve = None if beyond is None else beyond.curve
        return _Fit(weights / size, gain * weights / size, left, mutual, curve, self.pairing)


@dataclass(frozen=True)
class _Fit:
    """A regression's coefficients, and what it leaves over on samples that were left out: (m, outputs), or
    (settings, m, outputs)."""

    linear: Tensor
    square: Tensor
    left: Tensor
    mutual: Tensor  # (outputs,), see `missed_share`
    curve: Tensor | None  # (knots, outputs)
    pairing: Pairing

    @property
    def error(self) -> Tensor:
        """Mean square of what is left over and matters, (outputs,)."""
        return self.pairing.folded(self.left).square().mean(-2)

    def first(self) -> _Fit:
        return self._each(lambda part: part[0])

    def or_better(self, other: _Fit) -> _Fit:
        """For each output the fit with the smaller error on left-out samples."""
        better = other.error < self.error
        others = iter(other._parts())
        return self._each(lambda part: torch.where(better, next(others), part))

    def _parts(self) -> list[Tensor]:
        parts = (self.linear, self.square, self.left, self.mutual, self.curve)
        return [part for part in parts if part is not None]

    def _each(self, change: Callable[[Tensor], Tensor]) -> _Fit:
        linear, square, left, mutual, *curve = map(change, self._parts())
        return _Fit(linear, square, left, mutual, curve[0] if curve else None, self.pairing)


def _products(x: Tensor, prior: Tensor, correlation: Tensor | None) -> tuple[Tensor, Tensor]:
    """C x~ of every sample (m, n), and L = x~' C y~ of every two (m, m), one on average on its diagonal."""
    deviation = (prior + 0.02 * prior.mean()).sqrt().float()
    loadings = x * deviation
    if correlation is not None:
        loadings = loadings @ correlation
    loadings = loadings * deviation
    product = loadings @ x.T
    scale = product.diagonal().mean().clamp_min(1e-30)
    return loadings / scale, product / scale


def centered(masks: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Membership minus density `(m, n)`, and the density `(m,)`."""
    x = masks.to(dtype)
    p = x.mean(1)
    return x - p[:, None], p


@remembered(8)
def _functionals(n: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """The densities of the sizes 1 ... n-1, and what functionals of u'x and of (u'x)^2 have at each of them,
    over n (n-1,): see `Surrogate.shapley`."""
    sizes = torch.arange(1, n, dtype=torch.float64, device=device)
    f1 = sizes / n
    f2 = f1 * (sizes - 1) / (n - 1)
    f3 = f2 * (sizes - 2) / max(n - 2, 1)
    spread = n * f1 * (1 - f1)
    return f1, (f1 - f2) / spread, (f1 - 3 * f2 + 2 * f3) / spread


def density_kernel(a: Tensor, b: Tensor) -> Tensor:
    return torch.exp(-(a[:, None] - b).square() / (2 * WIDTH**2))


def noise_shape(p: Tensor, residuals: Tensor) -> Tensor:
    """How the variance changes with density, `(m,)`, averaged over outputs, one on average."""
    hats = hat_functions(p.double())
    square = residuals.square()
    square = (square / square.mean(0).clamp_min(1e-60)).mean(1, keepdim=True)
    left = hats.T @ hats
    left.diagonal().add_(0.5)
    fitted = hats @ torch.linalg.solve_ex(left, hats.T @ square + 0.5).result
    return fitted[:, 0].clamp_min(0.05).float()

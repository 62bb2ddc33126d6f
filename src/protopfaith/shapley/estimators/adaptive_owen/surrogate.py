"""A surrogate of the game whose Shapley values are known in closed form.

Gaussian process regression on masks: with x~ = x - p (p = s/n the mask's density) and C the covariance
that players' effects are expected to have, the kernel is

    k(x, y) = exp(-(p_x - p_y)^2 / 2 w^2) * (L + g L^2),   L = x~' C y~

so main effects and pairwise interactions that change with density. All outputs share the kernel, hence one
factorization. It is never trusted: what it leaves over is sampled, so it lowers variance and adds no bias.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from protopfaith.shapley.densities import hat_functions

WIDTH = 0.3  # w, over which effects change with density
# (g, noise over signal) to choose from, per output, by the error on left-out samples.
SETTINGS = ((0.0, 0.5), (1.0, 0.5))


@dataclass(frozen=True)
class Surrogate:
    """v^(x) = sum_k exp(...) * (linear_k L_k + square_k L_k^2) over the samples k it was fitted to."""

    loadings: Tensor  # (m, n): C x~_k, centered over the players
    densities: Tensor  # (m,)
    linear: Tensor  # (m, outputs)
    square: Tensor  # (m, outputs)

    def __call__(self, masks: Tensor) -> Tensor:
        """Predictions `(b, outputs)` for masks `(b, n)`."""
        x = masks.to(self.loadings.dtype)
        p = x.mean(1)
        product = x @ self.loadings.T  # of x - p, too: loadings sum to zero over the players
        weighted = density_kernel(p, self.densities) * product
        return weighted @ self.linear + (weighted * product) @ self.square

    def shapley(self) -> Tensor:
        """The part of its Shapley values that its sizes 1 ... n-1 make, `(outputs, n)` in float64.

        With players drawn without replacement and u summing to zero, the functional
        E[v (x_i - p)] / (p (1 - p)) of u'x is u_i (f1 - f2) / (p (1 - p)), and of (u'x)^2 it is
        (u_i^2 - mean u^2) (f1 - 3 f2 + 2 f3) / (p (1 - p)), where fk is the chance that k given players
        are all in.
        """
        n = self.loadings.shape[1]
        sizes = torch.arange(1, n, dtype=torch.float64, device=self.loadings.device)
        f1 = sizes / n
        f2 = f1 * (sizes - 1) / (n - 1)
        f3 = f2 * (sizes - 2) / max(n - 2, 1)
        spread = n * f1 * (1 - f1)
        kernel = density_kernel(self.densities.double(), f1)
        first = kernel @ ((f1 - f2) / spread)
        second = kernel @ ((f1 - 3 * f2 + 2 * f3) / spread)
        u = self.loadings
        values = (self.linear * first[:, None].to(u)).T @ u
        squares = u.square()
        squares = squares - squares.mean(1, keepdim=True)
        return (values + (self.square * second[:, None].to(u)).T @ squares).double()


def fit(
    masks: Tensor,
    residuals: Tensor,
    prior: Tensor,
    correlation: Tensor | None,
    settings: tuple[tuple[float, float], ...] = SETTINGS,
) -> tuple[Surrogate, Tensor]:
    """The surrogate of `residuals` `(m, outputs)` and what it leaves over on each sample when fitted
    without it.

    `prior` `(n,)` is the expected square of each player's effect, `correlation` that between
    players. Outputs that no setting predicts keep a surrogate of zero.
    """
    x, p = centered(masks, torch.float32)
    loadings, product = _products(x, prior, correlation)
    spread = residuals.std(0).clamp_min(1e-30).float()
    targets = residuals.float() / spread
    density, noise = density_kernel(p, p), noise_shape(p, residuals)
    best = _Fit.of_nothing(targets)
    for gain, ratio in settings:
        best = best.or_better(_regression(density, product, noise, targets, gain=gain, ratio=ratio))
    loadings = loadings - loadings.mean(1, keepdim=True)
    model = Surrogate(loadings, p, best.linear * spread, best.square * spread)
    return model, (best.left * spread).double()


@dataclass(frozen=True)
class _Fit:
    """A regression's coefficients, and what it leaves over on samples that were left out: (m, outputs)."""

    linear: Tensor
    square: Tensor
    left: Tensor

    @staticmethod
    def of_nothing(targets: Tensor) -> _Fit:
        return _Fit(torch.zeros_like(targets), torch.zeros_like(targets), targets)

    def or_better(self, other: _Fit) -> _Fit:
        """For each output the fit with the smaller error on left-out samples."""
        better = other.left.square().mean(0) < self.left.square().mean(0)
        linear = torch.where(better, other.linear, self.linear)
        square = torch.where(better, other.square, self.square)
        return _Fit(linear, square, torch.where(better, other.left, self.left))


def _products(x: Tensor, prior: Tensor, correlation: Tensor | None) -> tuple[Tensor, Tensor]:
    """C x~ of every sample (m, n), and L = x~' C y~ of every two (m, m), one on average on its diagonal."""
    deviation = (prior + 0.02 * prior.mean()).sqrt().float()
    loadings = x * deviation
    if correlation is not None:
        loadings = loadings @ correlation.float()
    loadings = loadings * deviation
    product = loadings @ x.T
    scale = product.diagonal().mean().clamp_min(1e-30)
    return loadings / scale, product / scale


def _regression(
    density: Tensor, product: Tensor, noise: Tensor, targets: Tensor, *, gain: float, ratio: float
) -> _Fit:
    """Gaussian process regression; a left-out sample's residual is its weight over the inverse's diagonal."""
    kernel = density * (product + gain * product.square())
    size = kernel.diagonal().mean().clamp_min(1e-30)
    root = torch.linalg.cholesky(kernel / size + ratio * noise.diag())
    eye = torch.eye(len(root), dtype=root.dtype, device=root.device)
    inverse_root = torch.linalg.solve_triangular(root, eye, upper=False)
    weights = inverse_root.T @ (inverse_root @ targets)
    diagonal = inverse_root.square().sum(0)  # of the inverse
    return _Fit(weights / size, gain * weights / size, weights / diagonal[:, None])


def centered(masks: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Membership minus density `(m, n)`, and the density `(m,)`."""
    x = masks.to(dtype)
    p = x.mean(1)
    return x - p[:, None], p


def density_kernel(a: Tensor, b: Tensor) -> Tensor:
    return torch.exp(-(a[:, None] - b).square() / (2 * WIDTH**2))


def noise_shape(p: Tensor, residuals: Tensor) -> Tensor:
    """How the variance changes with density, `(m,)`, averaged over outputs, one on average."""
    hats = hat_functions(p.double())
    square = (residuals.square() / residuals.square().mean(0).clamp_min(1e-60)).mean(1, keepdim=True)
    eye = torch.eye(hats.shape[1], dtype=hats.dtype, device=hats.device)
    fitted = hats @ torch.linalg.solve(hats.T @ hats + 0.5 * eye, hats.T @ square + 0.5)
    return fitted[:, 0].clamp_min(0.05).float()

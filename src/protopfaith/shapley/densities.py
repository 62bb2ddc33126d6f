"""Functions of a mask's density: the share of players that are present."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from protopfaith.constants import constant
from protopfaith.shapley.game import Game

KNOTS = 10  # of the function's mean as a function of density


def membership_weights(x: Tensor) -> Tensor:
    """(x_i - p) / (p (1 - p)) with p = s/n, the mask's own density, in float64; zero for all and for none."""
    x = x.double()
    p = x.mean(1, keepdim=True)
    spread = p * (1 - p)  # zero for all and for none, where x - p is zero, too
    return (x - p) / torch.where(spread > 0, spread, 1)


def hat_functions(p: Tensor) -> Tensor:
    """Piecewise linear functions of density `(m, KNOTS)`, with knots closer to the ends: at sin^2."""
    knots = _knots(p.dtype, p.device)
    right = torch.searchsorted(knots, p.clamp(0, 1)).clamp(1, KNOTS - 1)
    share = (p - knots[right - 1]) / (knots[right] - knots[right - 1])
    hats = torch.zeros(len(p), KNOTS, dtype=p.dtype, device=p.device)
    hats.scatter_(1, (right - 1)[:, None], (1 - share)[:, None])
    return hats.scatter_(1, right[:, None], share[:, None])


@lru_cache(maxsize=8)
def _knots(dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.sin(torch.linspace(0, torch.pi / 2, KNOTS, dtype=dtype, device=device)).square()


def anchored_mean(game: Game) -> dict[str, Tensor]:
    """Normal equations of the mean over density, which know its two ends from the start."""
    hats, left = ends(game.device)
    return {"left": left, "right": hats.T @ torch.stack([game.empty, game.grand]).double()}


@lru_cache(maxsize=8)
def ends(device: torch.device) -> tuple[Tensor, Tensor]:
    """Hat functions of both ends (2, KNOTS), and the left side of the normal equations before any sample."""
    hats = hat_functions(constant((0.0, 1.0), torch.float64, device))
    return hats, hats.T @ hats + roughness(device)


@lru_cache(maxsize=8)
def roughness(device: torch.device) -> Tensor:
    """What a function's values at the knots are penalized by, as a matrix: squares of their second
    differences."""
    second = torch.eye(KNOTS, dtype=torch.float64, device=device).diff(dim=0).diff(dim=0)
    return 0.1 * second.T @ second


def remove_mean(kept: dict[str, Tensor], p: Tensor, values: Tensor) -> Tensor:
    """Values minus their mean at density `p` as all samples but the own one know it; updates `kept`.

    Leaving the own sample out keeps the contribution unbiased: what is subtracted knows nothing of its mask.
    """
    hats = hat_functions(p)
    kept["left"] = kept["left"] + hats.T @ hats
    kept["right"] = kept["right"] + hats.T @ values
    inverse = torch.linalg.inv_ex(kept["left"]).inverse  # regular by its roughness; `inv` waits for a GPU
    leverage = ((hats @ inverse) * hats).sum(1, keepdim=True)
    return (values - hats @ (inverse @ kept["right"])) / (1 - leverage)

"""Functions of a mask's density: the share of players that are present."""

from __future__ import annotations

import torch
from torch import Tensor

from protopfaith.constants import constant, remembered
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
    start, up, end, down = _slopes(p.dtype, p.device)
    rising = torch.addcmul(start, p[:, None], up)
    falling = torch.addcmul(end, p[:, None], down)
    return torch.minimum(rising, falling).clamp_(0, 1)


@remembered(8)
def _slopes(dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The lines that rise to each knot from the one before and fall to the one after, (KNOTS,): where they
    meet density zero, and their slopes. The first hat does not rise, and the last one does not fall."""
    knots = torch.sin(torch.linspace(0, torch.pi / 2, KNOTS, dtype=torch.float64, device=device)).square()
    slopes = knots.diff().reciprocal()
    flat = torch.zeros_like(knots[:1])
    up, down = torch.cat([flat, slopes]), torch.cat([-slopes, flat])
    start, end = 1 - up * knots, 1 - down * knots
    return start.to(dtype), up.to(dtype), end.to(dtype), down.to(dtype)


def anchored_mean(game: Game) -> dict[str, Tensor]:
    """Normal equations of the mean over density, which know its two ends from the start."""
    hats, left = ends(game.device)
    return {"left": left, "right": hats.T @ torch.stack([game.empty, game.grand]).double()}


@remembered(8)
def ends(device: torch.device) -> tuple[Tensor, Tensor]:
    """Hat functions of both ends (2, KNOTS), and the left side of the normal equations before any sample."""
    hats = hat_functions(constant((0.0, 1.0), torch.float64, device))
    return hats, hats.T @ hats + roughness(device)


@remembered(8)
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
    kept["left"] = torch.addmm(kept["left"], hats.T, hats)
    kept["right"] = torch.addmm(kept["right"], hats.T, values)
    inverse = torch.linalg.inv_ex(kept["left"]).inverse  # regular by its roughness; `inv` waits for a GPU
    leverage = ((hats @ inverse) * hats).sum(1, keepdim=True)
    return torch.addmm(values, hats, inverse @ kept["right"], alpha=-1) / (1 - leverage)

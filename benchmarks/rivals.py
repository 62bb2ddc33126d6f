"""Other libraries' attributions as rows of `agreement.py`: values of players, one output at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from protopfaith.shapley import Game


@dataclass(frozen=True)
class Rival:
    """`run(game, budget, seed)` gives values `(outputs, n)`; each output costs the budget."""

    name: str
    run: Callable[[Game, int, int], Tensor]
    fixed: int = 0  # evaluations, where there is no budget to choose


def rivals(note: Callable[[str], None]) -> Iterator[Rival]:
    """Those whose package is there; says which are not."""
    for package, found in (("captum", _captum), ("shapiq", _shapiq)):
        try:
            yield from found()
        except ImportError:
            note(f"{package} is not installed: its rows are left out")


def _single(game: Game, output: int) -> Callable[[Tensor], Tensor]:
    def function(images: Tensor) -> Tensor:
        with torch.autocast(images.device.type, dtype=game.autocast, enabled=game.autocast is not None):
            return game.function(images)[:, output].float()

    return function


def _per_player(game: Game, pixels: Tensor) -> Tensor:
    """Sums a pixel attribution `C x H x W` over every player."""
    labels = game.players.labels.expand(pixels.shape).reshape(-1)
    return torch.zeros(game.n_players, device=pixels.device).index_add_(0, labels, pixels.reshape(-1).float())


def _captum() -> Iterator[Rival]:
    from captum.attr import GradientShap, IntegratedGradients, KernelShap

    def integrated_gradients(game: Game, budget: int, seed: int) -> Tensor:
        rows = []
        for output in range(game.n_outputs):
            method = IntegratedGradients(_single(game, output))
            pixels = method.attribute(
                game.image[None], game.baseline[None], n_steps=budget, internal_batch_size=budget
            )
            rows.append(_per_player(game, pixels[0].detach()))
        return torch.stack(rows)

    def gradient_shap(game: Game, budget: int, seed: int) -> Tensor:
        torch.manual_seed(seed)
        rows = []
        for output in range(game.n_outputs):
            method = GradientShap(_single(game, output))
            # No noise, as in evaluation/explainers/gradients.py: shares of this image's output alone.
            pixels = method.attribute(game.image[None], game.baseline[None], n_samples=budget, stdevs=0.0)
            rows.append(_per_player(game, pixels[0].detach()))
        return torch.stack(rows)

    def kernel_shap(game: Game, budget: int, seed: int) -> Tensor:
        torch.manual_seed(seed)
        mask = game.players.labels.expand(game.image.shape)[None]
        rows = []
        for output in range(game.n_outputs):
            pixels = KernelShap(_single(game, output)).attribute(
                game.image[None],
                game.baseline[None],
                feature_mask=mask,
                n_samples=budget,
                perturbations_per_eval=min(64, game.batch_size),
            )
            values = torch.zeros(game.n_players, device=pixels.device)
            rows.append(values.scatter_(0, mask.reshape(-1), pixels.reshape(-1).float()))
        return torch.stack(rows)

    yield Rival("captum IntegratedGradients", integrated_gradients, fixed=64)
    yield Rival("captum GradientShap", gradient_shap, fixed=64)
    yield Rival("captum KernelShap", kernel_shap)


def _shapiq() -> Iterator[Rival]:
    from shapiq import approximator

    def rival(name: str, options: dict) -> Rival:
        def run(game: Game, budget: int, seed: int) -> Tensor:
            rows = []
            for output in range(game.n_outputs):

                def play(coalitions: np.ndarray, output: int = output) -> np.ndarray:
                    masks = torch.as_tensor(np.atleast_2d(coalitions).astype(bool))
                    return (game(masks)[:, output] - game.empty[output]).double().cpu().numpy()

                method = getattr(approximator, name)(n=game.n_players, random_state=seed, **options)
                result = method.approximate(budget, play)
                rows.append(torch.tensor([float(result[(i,)]) for i in range(game.n_players)]))
            return torch.stack(rows)

        return Rival(f"shapiq {name}", run)

    yield rival("KernelSHAP", {"pairing_trick": True})
    yield rival("PermutationSamplingSV", {})
    yield rival("SVARM", {})
    yield rival("OwenSamplingSV", {})

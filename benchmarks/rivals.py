"""Other libraries' attributions as rows of `agreement.py`: values of players, one output at a time."""

from __future__ import annotations

import atexit
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Listener
from pathlib import Path

import torch
from torch import Tensor

from protopfaith.shapley import Game


@dataclass(frozen=True)
class Rival:
    """`run(game, budget, seed)` gives values `(outputs, n)`; each output costs the budget."""

    name: str
    run: Callable[[Game, int, int], Tensor]
    fixed: int = 0  # evaluations, where there is no budget to choose


def rivals(note: Callable[[str], None], shapiq_python: str | None = None) -> Iterator[Rival]:
    """Those whose package is there; says which are not. Another Python may have another version of shapiq."""
    for package, found in (
        ("captum", _captum),
        ("shapiq", partial(_shapiq, shapiq_python or sys.executable)),
    ):
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


def _shapiq(python: str) -> Iterator[Rival]:
    """All of its approximators of Shapley values, by a process of their own (see `shapiq_worker.py`)."""
    worker = _Worker(python)

    def rival(name: str) -> Rival:
        def run(game: Game, budget: int, seed: int) -> Tensor:
            return torch.stack(
                [worker.values(name, game, output, budget, seed) for output in range(game.n_outputs)]
            )

        return Rival(f"shapiq {name}", run)

    for name in worker.names:
        yield rival(name)


class _Worker:
    """A Python that has shapiq, asked for one approximation at a time; it asks back for the game's values."""

    def __init__(self, python: str):
        key = secrets.token_hex(16)
        with Listener(authkey=key.encode()) as listener:
            script = Path(__file__).with_name("shapiq_worker.py")
            self.process = subprocess.Popen(
                [python, str(script), str(listener.address)], env={**os.environ, "SHAPIQ_WORKER_KEY": key}
            )
            atexit.register(self.process.kill)
            self.connection = listener.accept()
        try:
            self.names: list[str] = self.connection.recv()
        except EOFError:
            raise ImportError(f"{python} has no shapiq") from None

    def values(self, name: str, game: Game, output: int, budget: int, seed: int) -> Tensor:
        self.connection.send((name, game.n_players, budget, seed))
        while True:
            kind, answer = self.connection.recv()
            if kind == "values":
                return torch.as_tensor(answer)
            if kind == "error":
                raise ValueError(answer)
            values = (game(torch.as_tensor(answer))[:, output] - game.empty[output]).double()
            self.connection.send(values.cpu().numpy())

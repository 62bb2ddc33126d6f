"""Going on from an earlier result: is it one of this game, made with these options?"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d

from protopfaith.errors import ProtoPFaithError
from protopfaith.shapley.attribution import Attribution
from protopfaith.shapley.game import OTHER_BATCH, OTHER_BATCH_REDUCED, Game, sizes_of
from protopfaith.shapley.transfer import on_cpu

# Options that may change on the way: how the work is done, and what is made of the sums only at the end.
# All others shape the sums themselves.
FREE = ("shrinkage", "batch_size", "fuse", "stop_after", "seconds", "checkpoint")
MARK = "game."  # begins the names of what a state tells of its game
CELLS = 8  # rows and columns of the small images by which an image and a baseline are recognized
SAME_IMAGE = 2e-3  # of the largest pixel: a blur on another device, or a 16-bit dtype, rounds by less


def marks(game: Game) -> dict[str, Tensor]:
    """What a state keeps to recognize its game by; see `check_same_game`."""
    return {
        MARK + "image": _cells(game.image),
        MARK + "baseline": _cells(game.baseline),
        MARK + "ends": torch.stack([game.grand, game.empty]).double(),
        MARK + "reduced": torch.tensor(game.is_reduced),
    }


def own_copy(resume: Attribution, device: torch.device) -> Attribution:
    """The result with a copy of its state on the device: estimators add to it in place."""
    kept = {name: tensor for name, tensor in (resume.state or {}).items() if not name.startswith(MARK)}
    return replace(resume, state={name: tensor.to(device, copy=True) for name, tensor in kept.items()})


def check_method(resume: Attribution, method: str) -> None:
    """Raises if the result is of another estimator, or did not keep its state."""
    whole = resume.state is not None and MARK + "ends" in resume.state
    if not whole or resume.method != method:
        raise ProtoPFaithError(
            f"A result of {resume.method!r}{'' if whole else ' without its state'} cannot be continued by "
            f"{method!r}; continue with the method that made it, from a result that kept its state."
        )


def check_options(resume: Attribution, estimator: Callable, options: dict) -> None:
    """Raises if an option is not what the state was made with, but for those in `FREE`."""
    parameters = inspect.signature(estimator).parameters
    for name, value in options.items():
        default = parameters[name].default if name in parameters else None
        made = resume.options.get(name, default)
        if name not in FREE and value != made:
            raise ProtoPFaithError(
                f"The result to continue was made with {name}={made!r}, not {value!r}; leave the option "
                f"out, or start anew without resume."
            )


def check_same_game(resume: Attribution, game: Game) -> None:
    """Raises if the result is one of another game.

    Players and the number of outputs must be equal. Image and baseline are compared as 8 x 8 means, tightly:
    neither batches nor autocast change them. Of the function its values on both are compared, up to what
    another batch size, another device or (where one of the games has it) a 16-bit dtype changes by rounding.
    An exact result keeps no state, so of it only the totals are compared.
    """
    different = _difference(resume, game)
    if different is not None:
        raise ProtoPFaithError(
            f"The result to continue belongs to another game ({different} differ); continue it with the "
            f"game that it came from, or start anew without resume."
        )


def _difference(resume: Attribution, game: Game) -> str | None:
    if not torch.equal(resume.players.labels, game.players.labels.cpu()):
        return "the players"
    if len(resume.values) != game.n_outputs:
        return "the numbers of outputs"
    now, state = on_cpu(marks(game)), resume.state or {}
    before = {name: state.get(name, mark) for name, mark in now.items()}
    for name in ("image", "baseline"):
        if not _similar(before[MARK + name], now[MARK + name], float(game.image.abs().max())):
            return f"the {name}s"
    reduced = game.is_reduced or bool(before[MARK + "reduced"])
    allowed = (OTHER_BATCH_REDUCED if reduced else OTHER_BATCH) * sizes_of(now[MARK + "ends"])
    ends = (before[MARK + "ends"] - now[MARK + "ends"]).abs()
    totals = (resume.total - game.total.cpu()).abs()
    if bool((ends > allowed).any()) or bool((totals > 2 * allowed).any()):
        return "the function's values on image and baseline"
    return None


def _similar(first: Tensor, second: Tensor, scale: float) -> bool:
    if first.shape != second.shape:
        return False
    largest = max(scale, float(second.abs().max()))
    return bool(((first - second).abs() <= SAME_IMAGE * largest).all())


def _cells(image: Tensor) -> Tensor:
    return adaptive_avg_pool2d(image.double(), CELLS)

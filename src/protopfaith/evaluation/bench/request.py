"""What is asked about explainers, checked before any work."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from protopfaith.annotations import fits
from protopfaith.arguments import shown, whole_number
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.bench.settings import TRUTH, BenchSettings
from protopfaith.evaluation.explainers import EXPLAINERS
from protopfaith.evaluation.explainers.games import ESTIMATES, check_estimated
from protopfaith.evaluation.metrics.quantus_metrics import check_quantus
from protopfaith.evaluation.metrics.truth import check_true_values
from protopfaith.evaluation.results import EARLY
from protopfaith.shapley import Game

FEWEST_STEPS = math.ceil(1 / EARLY)
MOST = 100_000_000


def check_request(
    names: Sequence[str], prototypes: int | Sequence[int] | None, settings: BenchSettings
) -> None:
    """Raises, in one sentence, if something could not come to a good end."""
    _check_names(names, settings)
    _check_numbers(prototypes, settings)
    if settings.quantus:
        check_quantus()
    _check_estimates(names, settings)


def _check_names(names: Sequence[str], settings: BenchSettings) -> None:
    if not names:
        raise ProtoPFaithError(f"No explainer was named; give some of {', '.join(EXPLAINERS)}.")
    for name in [*names, *(set(settings.limits) - {TRUTH})]:
        EXPLAINERS[name]
    for name, limit in settings.limits.items():
        if limit < 1:
            raise ProtoPFaithError(f"The limit of {name} is {limit} prototypes; give at least one.")


def _check_numbers(prototypes: int | Sequence[int] | None, settings: BenchSettings) -> None:
    if prototypes is not None and not fits(prototypes, int | Sequence[int]):
        raise ProtoPFaithError(f"Prototypes are a number or a list of numbers, not {shown(prototypes)}.")
    count = prototypes if prototypes is None or isinstance(prototypes, int) else len(prototypes)
    options, early = settings.options, f", since AOPC is also taken over the first {EARLY:.0%} of the steps"
    for name, number, least, why in (
        ("number of prototypes", count, 1, ""),
        ("number of steps", settings.steps, FEWEST_STEPS, early),
        ("number of sizes", options.sizes, 1, ""),
        ("number of checked images", settings.checked, 1, ""),
        ("truth_budget", settings.truth_budget, 0, ""),
        ("moment_batch", options.moment_batch, 1, ""),
    ):
        if number is None:
            continue
        if isinstance(number, int) and number < least:
            raise ProtoPFaithError(f"The {name} is {number}; give at least {least}{why}.")
        whole_number(number, f"The {name}", least=least, most=MOST)


def _check_estimates(names: Sequence[str], settings: BenchSettings) -> None:
    """Estimators refuse what they cannot work with, such as a budget too small for the players."""
    options = settings.options
    image = torch.zeros(1, *options.players.labels.shape)
    game = Game(_zeros, image, options.players, memory=options.memory, check=False)
    for name in names:
        if name in ESTIMATES:
            check_estimated(name, game, options)
    if settings.truth_budget:
        try:
            check_true_values(game, settings.truth_budget)
        except ProtoPFaithError as error:
            halves = f"The true values take two halves of truth_budget={settings.truth_budget}"
            raise ProtoPFaithError(f"{halves}: {error}") from error


def _zeros(images: Tensor) -> Tensor:
    """Stands for the network."""
    return images.new_zeros(len(images), 1)

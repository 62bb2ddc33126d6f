from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from protopfaith.explanation import Explainer, Settings
from protopfaith.explanation.playing import distances_and_logit, play
from protopfaith.explanation.settings import coarse_players
from protopfaith.shapley import Players


def test_settings_have_names_that_change_with_the_result() -> None:
    plain = Settings()
    assert plain.key() == replace(plain, batch_size=3).key() == replace(plain, players="16").key()
    others = [
        replace(plain, players=8),
        replace(plain, budget=100),
        replace(plain, baseline="blur"),
        replace(plain, baseline=torch.zeros(3, 4, 4)),
        replace(plain, baseline=torch.ones(3, 4, 4)),
        replace(plain, players=torch.zeros(4, 4).long()),
    ]
    assert len({plain.key(), plain.key("weights"), *(one.key() for one in others)}) == 8


def test_one_pass_gives_distances_and_the_weighted_sum(explainer: Explainer) -> None:
    model = explainer.model
    x, row = torch.randn(3, 3, 48, 48), torch.randn(len(model.prototypes))
    with torch.no_grad():
        distances = model.distances(x)
        found = distances_and_logit(model, [4, 1], row)(x)
    assert torch.allclose(found[:, :2], distances[:, [4, 1]])
    assert torch.allclose(found[:, 2], -(distances @ row), atol=1e-3)


@pytest.mark.parametrize("size", [(224, 224), (48, 48), (50, 30), (7, 9)])
def test_the_coarse_answer_has_seven_by_seven_windows(size: tuple[int, int]) -> None:
    assert 16 <= len(coarse_players(torch.zeros(3, *size))) <= 49


def test_only_the_driving_outputs_decide_when_to_stop() -> None:
    """One output is easy (additive), the other has interactions that cancel: nobody could reach its
    precision."""
    image = torch.rand(1, 4, 4, generator=torch.Generator().manual_seed(0)) + 0.5

    def function(images: torch.Tensor) -> torch.Tensor:
        flat = images.flatten(1)
        hard = torch.sin(50 * flat.sum(1)) * 100
        return torch.stack([flat.sum(1), hard], 1)

    plan = Settings(players=Players.windows((4, 4), 1), precision=0.05, budget=4096)
    easy = play(function, image, plan, driving=[0])
    both = play(function, image, plan)
    assert easy.reached
    assert not both.reached
    assert easy.evaluations < both.evaluations


@pytest.mark.parametrize("precision", [None, 0.3])
def test_progress_moves_with_every_batch_and_ends_full(precision: float | None) -> None:
    seen: list[tuple[int, int]] = []
    plan = Settings(players=Players.windows((4, 4), 1), precision=precision, budget=2000, batch_size=100)
    image = torch.rand(1, 4, 4)
    play(lambda x: x.flatten(1).prod(1) * 100, image, plan, progress=lambda *one: seen.append(one))
    done = [one for one, _ in seen]
    assert len(seen) > 8
    assert done == sorted(done)
    assert all(one <= expected for one, expected in seen)
    assert seen[-1][0] == seen[-1][1]

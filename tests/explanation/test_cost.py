"""What explanations will cost, against what they did cost."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch
from rich.console import Console

from protopfaith.explanation import Explainer, Settings, explain_files
from protopfaith.explanation.cost import (
    Cost,
    Overall,
    cost_sentence,
    expected_cost,
    has_coarse,
    source_games,
)
from protopfaith.explanation.settings import make_players
from protopfaith.progress import Bar

BLANK = torch.zeros(3, 48, 48)


@pytest.mark.parametrize(
    ("settings", "coarse"),
    [
        (Settings(players=4, budget=4096), True),
        (Settings(players=4, precision=0.1), True),
        (Settings(players=4, budget=512), False),  # not quicker
        (Settings(players=16, budget=4096), False),  # nine regions: not coarser
        (Settings(players="superpixels:100", budget=4096), True),
        (Settings(players="superpixels:30", budget=4096), False),
    ],
)
def test_a_coarse_answer_is_coarser_and_quicker(settings: Settings, coarse: bool) -> None:
    assert has_coarse(settings, BLANK) == coarse


def test_the_expected_cost_is_what_it_takes(explainer: Explainer, pixels: torch.Tensor) -> None:
    plan = Settings(players=4, budget=600, seed=77, second_baseline="blur", source_budget=100)
    games = {explainer.sources.source(p).sha256 for p in (0, 1)}
    cost = expected_cost(plan, BLANK, coarse=True, games=len(games))
    seen: dict[str, int] = {}
    explainer.explain(
        pixels,
        target=0,
        settings=plan,
        on_coarse=lambda _: None,
        progress=lambda stage, done, expected: seen.update({stage: done}),
    )
    assert sum(seen.values()) == cost.total == 512 + 2 * 600 + 100 * len(games)


def test_source_images_that_are_known_cost_nothing(explainer: Explainer) -> None:
    plan = Settings(players=24, budget=96, seed=78)
    before = source_games(explainer.model, explainer.sources, plan, 1)
    assert 0 < before <= 2  # two prototypes per class
    assert source_games(explainer.model, explainer.sources, plan, 80) < before
    explainer.sources.explain(range(16), plan)
    assert source_games(explainer.model, explainer.sources, plan, 1) == 0


def test_the_cost_is_told_where_it_takes_long(explainer: Explainer) -> None:
    assert cost_sentence(explainer.model, BLANK, Cost(0, 1, 0, 0), 1) is None
    sentence = cost_sentence(explainer.model, BLANK, Cost(512, 4_000_000, 0, 0), 3)
    assert sentence is not None
    assert sentence.startswith("3 images with about 4,000,512 evaluations of the network each: about ")
    assert "on this CPU; --quick takes about " in sentence


def test_one_bar_counts_all_images_and_never_goes_back() -> None:
    bar = Bar(shown=True, console=Console(file=io.StringIO(), force_terminal=True))
    overall = Overall(bar, 2, Cost(10, 100, 50, 2))
    shares: list[float] = []
    for name in ("a", "b"):
        overall.start(name)
        for stage, count in (("coarse answer", 10), ("test image", 100), ("source images", 100)):
            for done in (count // 2, count):
                overall.report(stage, done, count)
                (task,) = bar._progress.tasks
                shares.append(task.completed / (task.total or 1))
    assert shares == sorted(shares)
    assert shares[5] == pytest.approx(0.5)
    assert shares[-1] == 1


def test_files_that_are_done_do_not_count(explainer: Explainer, bird_file: Path, tmp_path: Path) -> None:
    plan = {"budget": 96, "players": 24, "figures": (), "sources": False}
    explain_files(explainer, [bird_file], tmp_path, **plan)  # type: ignore[arg-type]
    calls: list[int] = []
    hook = explainer.model.encoder.register_forward_pre_hook(lambda *_: calls.append(1))
    try:
        explain_files(explainer, [bird_file], tmp_path, progress=True, **plan)  # type: ignore[arg-type]
    finally:
        hook.remove()
    assert not calls


@pytest.mark.parametrize("asked", [{"budget": 99_999_999_999}, {"precision": 1e-6}])
def test_no_more_is_announced_than_all_coalitions(asked: dict) -> None:
    plan = Settings(players=16, source_budget=10**9, **asked)
    cost = expected_cost(plan, BLANK, coarse=False, games=1)
    assert cost.image == cost.sources == 2 ** len(make_players(16, BLANK))

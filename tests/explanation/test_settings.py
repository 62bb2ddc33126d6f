"""Settings: named by what changes the result, and completed by the device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import (
    Explainer,
    Settings,
    ShapleyAttribution,
    explain,
    explain_function,
    explain_prototypes,
)
from protopfaith.explanation.settings import (
    USUAL_BUDGET,
    USUAL_PRECISION,
    USUAL_SOURCE_BUDGET,
    coarse_players,
    make_players,
    usual_budget,
    usual_window,
)


def test_settings_have_names_that_change_with_the_result() -> None:
    plain = Settings(players=16)
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


@pytest.mark.parametrize("size", [(224, 224), (48, 48), (50, 30), (7, 9)])
def test_the_coarse_answer_has_seven_by_seven_windows(size: tuple[int, int]) -> None:
    assert 16 <= len(coarse_players(torch.zeros(3, *size))) <= 49


@pytest.mark.parametrize(
    ("device", "kind"), [("cpu", "cpu"), ("cuda", "gpu"), ("cuda:1", "gpu"), ("mps", "gpu")]
)
def test_the_device_decides_where_nothing_else_is_said(device: str, kind: str) -> None:
    assert usual_budget(device) == usual_budget(torch.device(device)) == USUAL_BUDGET[kind]
    found = Settings().on(device, (224, 224))
    assert found.players == usual_window(device, (224, 224)) == {"cpu": 28, "gpu": 16}[kind]
    assert (found.budget, found.source_budget) == (USUAL_BUDGET[kind], USUAL_SOURCE_BUDGET[kind])
    assert found.precision == USUAL_PRECISION
    assert found.on(device, (224, 224)) == found
    for said in (Settings(8, budget=77), Settings(8, precision=0.1), Settings(8, 0.1, 77)):
        assert said.on(device, (224, 224)) == replace(said, source_budget=said.budget)


@pytest.mark.parametrize("side", [32, 96, 100, 224, 300, 512])
def test_a_cpu_has_few_windows(side: int) -> None:
    players = make_players(None, torch.zeros(3, side, side))
    assert len(players) <= 64
    assert len(make_players(usual_window("cuda", (side, side)), torch.zeros(3, side, side))) >= len(players)


def test_the_quick_preset_leaves_what_was_said() -> None:
    quick = Settings().made_quick().on("cpu", (224, 224))
    assert (quick.players, quick.budget, quick.sources) == (32, 512, False)
    said = Settings(players=8, budget=2000, seed=4).made_quick()
    assert (said.players, said.budget, said.seed, said.sources) == (8, 2000, 4, False)


def test_keywords_replace_fields_and_others_are_refused() -> None:
    assert Settings.of(Settings(players=8, seed=1), seed=2) == Settings(players=8, seed=2)
    assert Settings.of(players="8") == Settings(players=8)
    with pytest.raises(TypeError, match=r"no setting named 'player'; did you mean 'players'"):
        Settings.of(player=8)


def test_settings_and_keywords_ask_for_the_same(explainer: Explainer, pixels: torch.Tensor) -> None:
    plan = Settings(players=24, budget=96, sources=False)
    one = explainer.explain(pixels, settings=plan)
    two = explainer.explain(pixels, players=24, budget=96, sources=False)
    three = explainer.explain(pixels, settings=replace(plan, players=8), players=24)
    assert torch.equal(one.class_map.values, two.class_map.values)
    assert torch.equal(one.class_map.values, three.class_map.values)


def test_the_same_words_every_time_and_on_one_line() -> None:
    labels = torch.zeros(4, 4).long()
    assert repr(Settings()) == "Settings()"
    assert repr(Settings(players=labels, seed=3)) == "Settings(players=<tensor 4 x 4>, seed=3)"
    assert "\n" not in repr(Settings(baseline=torch.rand(3, 40, 40), options={"shrinkage": False}))


@pytest.mark.parametrize("method", ["exact", "dasp", "moment_path"])
def test_what_does_not_sample_does_what_it_always_did(method: str) -> None:
    assert Settings(estimator=method).on("cpu", (224, 224)).precision is None


def test_easy_games_stop_early_and_hard_ones_take_the_budget(
    explainer: Explainer, pixels: torch.Tensor
) -> None:
    hard = explain(explainer, pixels, players=4, sources=False)  # an untrained network: all regions interact
    assert hard.evaluations == USUAL_BUDGET["cpu"]
    assert hard.precision > USUAL_PRECISION
    assert not hard.reached
    easy = explain_function(
        lambda images: images.sum((2, 3)), pixels, preprocessing=explainer.preprocessing, players=4
    )
    assert easy.evaluations < USUAL_BUDGET["cpu"]
    assert easy.precision <= USUAL_PRECISION
    assert easy.reached


def test_every_explanation_takes_the_usual_budget_of_its_device(
    explainer: Explainer, pixels: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(USUAL_BUDGET, "cpu", 100)
    monkeypatch.setitem(USUAL_SOURCE_BUDGET, "cpu", 90)
    found = explain(explainer, pixels, players=12)
    assert found.evaluations == found.settings["budget"] == 100
    assert {one.source_side.evaluations for one in found.evidence if one.source_side} == {90}
    games = {one.source_side.path for one in found.evidence}  # type: ignore[union-attr]
    assert found.evaluations_in_all == 100 + 90 * len(games)
    again = explain(explainer, pixels, players=12)
    assert again.evaluations_in_all == 100  # the maps on source images are kept
    assert explain(explainer, pixels, players=12, budget=80, sources=False).evaluations == 80
    catalog = explain_prototypes(explainer, players=12, nearest=1)
    assert {one.source_side.evaluations for one in catalog.prototypes} == {90}
    assert catalog.settings.budget == 100
    method = ShapleyAttribution(lambda images: images.flatten(1).prod(1), players=1)
    method.attribute(torch.rand(1, 1, 4, 4))
    assert method.attributions[0].evaluations == 100


def test_maps_of_sources_are_kept_apart_by_the_budget_that_was_used(
    explainer: Explainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a CPU and a GPU that share a run's folder."""
    plan = Settings(players=12, seed=5)
    monkeypatch.setitem(USUAL_SOURCE_BUDGET, "cpu", 90)
    explainer.sources.explain([0], plan)
    assert explainer.sources.known([0], plan)
    assert explainer.sources.known([0], replace(plan, precision=USUAL_PRECISION, budget=90))
    monkeypatch.setitem(USUAL_SOURCE_BUDGET, "cpu", 120)
    assert not explainer.sources.known([0], plan)
    assert explainer.sources.explain([0], plan)[0].evaluations == 120


def test_what_is_written_about_budgets_is_true() -> None:
    said = "{cpu:,}, on a GPU {gpu:,}".format(**USUAL_BUDGET)
    manual = Path(__file__).parents[2] / "docs" / "explanations.md"
    for text in (Settings.__doc__ or "", manual.read_text(encoding="utf-8")):
        assert said in " ".join(text.split())


@pytest.mark.parametrize("side", [32, 48, 64, 96, 112, 160, 224, 320])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_quick_regions_are_never_finer_than_the_usual_ones(side: int, device: str) -> None:
    usual, quick = (one.on(device, (side, side)).players for one in (Settings(), Settings().made_quick()))
    assert isinstance(usual, int)
    assert isinstance(quick, int)
    assert quick >= usual


def test_a_label_image_may_be_an_array() -> None:
    labels = np.repeat(np.arange(4), 64).reshape(16, 16)
    assert len(make_players(Settings(players=labels).players, torch.zeros(3, 16, 16))) == 4


def test_a_second_baseline_is_another_one() -> None:
    with pytest.raises(ProtoPFaithError, match="second baseline is the first one again"):
        Settings(baseline="blur", second_baseline="blur")


def test_options_have_names() -> None:
    with pytest.raises(ProtoPFaithError, match="The name of an option must be text, not 1"):
        Settings(options={1: 2})  # type: ignore[dict-item]

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from protopfaith.devices import choose_autocast
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer, Explanation, Settings, ShapleyAttribution, explain
from protopfaith.explanation.game import check_game, distances_and_outputs, play
from protopfaith.shapley import ESTIMATORS, Attribution, Game, Players, finish
from protopfaith.show.report import render_report

CPU = torch.device("cpu")


def test_one_pass_gives_distances_and_the_weighted_sum(explainer: Explainer) -> None:
    model = explainer.model
    x, row = torch.randn(3, 3, 48, 48), torch.randn(len(model.prototypes))
    with torch.no_grad():
        distances = model.distances(x)
        found = distances_and_outputs(model, [4, 1], row[None], log_probability=3, temperature=2.0)(x)
        log_p = (model.logits(distances) / 2).log_softmax(1)
    assert torch.allclose(found[:, :2], distances[:, [4, 1]])
    assert torch.allclose(found[:, 2], -(distances @ row), atol=1e-3)
    assert torch.allclose(found[:, 3], log_p[:, 3], atol=1e-4)


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


@pytest.mark.parametrize("estimator", ["permutation", "kernel"])
def test_a_precision_alone_suffices_for_many_players(estimator: str) -> None:
    """The first round is large enough for estimators that need several evaluations a player."""
    image = torch.rand(1, 28, 28)
    plan = Settings(players=1, precision=0.5, estimator=estimator)
    found = play(lambda x: x.flatten(1).sum(1), image, plan)
    assert found.reached
    assert torch.allclose(found.values[0], image.flatten().double(), atol=1e-3)


def _register(**traits: Any) -> None:
    """An estimator of one's own: deterministic, without state, and without any idea of its errors."""

    @ESTIMATORS.register("mine", **traits)
    def mine(game: Game, *, precision: float | None, progress: Any, **_: Any) -> Attribution:
        values = game(torch.eye(game.n_players, dtype=torch.bool)).double().T - game.empty[:, None]
        if progress is not None:
            progress(1, 1)
        unknown = torch.full_like(values, torch.nan)
        return finish(game, "mine", values, unknown, evaluations=game.n_players, precision=precision)


@pytest.mark.parametrize("traits", [{}, {"evaluates": False, "per_output": True, "full_precision": True}])
def test_an_estimator_of_ones_own_with_unknown_errors_works_with_a_precision(traits: dict) -> None:
    image = torch.rand(1, 4, 4)
    _register(**traits)
    try:
        plan = Settings(players=2, estimator="mine", precision=0.1)
        assert plan.traits.per_output == bool(traits)
        for kind in (None, torch.bfloat16):
            cast = replace(plan, autocast=kind).on(image.device, (4, 4))
            assert cast.autocast == (None if traits else kind)
        seen: list[tuple[int, int]] = []
        found = play(lambda x: x.flatten(1).sum(1), image, plan, progress=lambda *one: seen.append(one))
        assert torch.allclose(found.values[0].sum(), image.double().sum())
        assert not found.reached  # nobody knows
        assert seen[-1][0] == seen[-1][1]
        check_game(plan, image)
    finally:
        del ESTIMATORS["mine"]


@pytest.mark.parametrize("estimator", ["dasp", "moment_path"])
def test_moment_propagation_is_never_played_under_autocast(estimator: str) -> None:
    """Whoever makes the settings."""
    image = torch.rand(1, 4, 4, generator=torch.Generator().manual_seed(0))
    layer = torch.nn.Linear(16, 1)

    def function(images: torch.Tensor) -> torch.Tensor:
        return layer(images.flatten(1)).relu()

    plans = [Settings(players=2, estimator=estimator, autocast=kind) for kind in (None, torch.bfloat16)]
    full, reduced = (play(function, image, plan) for plan in plans)
    assert torch.equal(full.values, reduced.values)
    assert torch.equal(full.total, reduced.total)
    assert full.options == reduced.options  # no rounding to speak of
    assert plans[0].key() == plans[1].key()
    assert Settings(autocast=torch.bfloat16).autocast is torch.bfloat16
    method = ShapleyAttribution(function, 2, estimator=estimator, autocast=torch.bfloat16)
    method.attribute(image[None])
    assert torch.equal(method.attributions[0].values, full.values)


def test_a_check_asks_for_nothing_and_finds_what_the_game_would() -> None:
    image = torch.rand(3, 24, 24)
    for estimator in ("default", "owen", "kernel", "permutation", "dasp", "moment_path"):
        check_game(Settings(players=4, estimator=estimator, second_baseline="blur"), image)
    check_game(Settings(players="superpixels:10", estimator="exact"), image)
    check_game(Settings(players=24), image)  # one player
    for wrong in (
        Settings(players=1, estimator="exact"),
        Settings(players=4, budget=20),
        Settings(players=4, estimator="dasp", options={"sizes": "many"}),
    ):
        with pytest.raises(ProtoPFaithError) as checked:
            check_game(wrong, image)
        with pytest.raises(ProtoPFaithError) as played:
            play(lambda x: x.flatten(1).sum(1), image, wrong)
        assert str(checked.value) == str(played.value)


@pytest.mark.parametrize(
    ("asked", "kind"),
    [("auto", None), ("off", None), (None, None), ("bfloat16", torch.bfloat16), (torch.half, torch.half)],
)
def test_the_type_by_its_name(asked: str | torch.dtype | None, kind: torch.dtype | None) -> None:
    assert choose_autocast(asked, CPU) == kind


def test_an_unknown_type_is_one_sentence() -> None:
    with pytest.raises(ProtoPFaithError, match=r"bf16.*use auto, off, bfloat16, float16"):
        choose_autocast("bf16", CPU)


def test_moment_propagation_never_runs_in_half_precision() -> None:
    for estimator, kind in (("default", torch.bfloat16), ("dasp", None), ("moment_path", None)):
        assert Settings(estimator=estimator, autocast="bfloat16").on(CPU, (48, 48)).autocast == kind


def test_totals_are_those_without_rounding() -> None:
    """A function that knows whether it is under autocast: its totals without are 4 and -2."""

    def function(images: torch.Tensor) -> torch.Tensor:
        size = images.sum((1, 2, 3)) * (1.25 if torch.is_autocast_enabled("cpu") else 1.0)
        return torch.stack([size, -0.5 * size], 1)

    plan = Settings(players=1, estimator="permutation", budget=14)
    image = torch.ones(1, 2, 2)
    full, half = play(function, image, plan), play(function, image, replace(plan, autocast=torch.bfloat16))
    assert "rounding" not in full.options
    assert half.options["rounding"] == pytest.approx(0.25)
    assert torch.equal(half.total, full.total)
    assert torch.allclose(half.values, full.values)  # each player had a quarter too much, and gave it back
    assert torch.allclose(half.completeness_gap, torch.tensor([1.0, -0.5]).double())


def test_the_logit_is_summed_in_full_precision(explainer: Explainer) -> None:
    """It is a small difference of large sums."""
    model = explainer.model
    x, row = torch.randn(3, 3, 48, 48), 1000 + torch.randn(len(model.prototypes))
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        found = distances_and_outputs(model, None, row[None])(x)
    assert torch.allclose(found[:, -1], -(found[:, :-1] @ row), rtol=1e-5)


def test_an_explanation_in_half_precision_says_so(
    explainer: Explainer, explanation: Explanation, pixels: torch.Tensor
) -> None:
    half = explain(explainer, pixels, budget=256, autocast="bfloat16", sources=False)
    assert half.settings["autocast"] == "bfloat16"
    assert 0 < half.settings["rounding"] < 0.5  # how much it is depends on the processor
    assert "computed in bfloat16" in render_report(half)
    assert explanation.settings["autocast"] is None
    assert "bfloat16" not in render_report(explanation)
    # The decision and its distances are those of the network itself.
    for one, other in zip(half.evidence, explanation.evidence, strict=True):
        assert one.distance == other.distance
        assert one.test.total == pytest.approx(other.test.total, abs=1e-5)
        assert float(one.test.values.sum()) == pytest.approx(one.test.total, abs=1e-6)
    assert not torch.equal(half.class_map.values, explanation.class_map.values)
    together = torch.stack([half.class_map.values, explanation.class_map.values])
    assert float(torch.corrcoef(together)[0, 1]) > 0.9  # the same coalitions, rounded


@pytest.mark.parametrize("budget", [None, 1, 4096])
def test_an_estimator_that_needs_what_it_needs_is_told_no_budget(budget: int | None) -> None:
    found = play(
        lambda x: x.flatten(1).sum(1), torch.rand(1, 4, 4), Settings(2, budget=budget, estimator="exact")
    )
    assert found.evaluations == 2**4

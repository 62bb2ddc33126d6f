"""Axioms pass where they hold, and fail on explainers that are broken on purpose."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from protopfaith.evaluation.explainers import EXPLAINERS, Explained, game_of
from protopfaith.evaluation.explainers.games import from_attribution
from protopfaith.evaluation.metrics.axioms import AXIOMS, AxiomCheck, check_axioms, on_grid
from protopfaith.shapley import Players, estimate

SHAPLEY = ["completeness", "dummy", "symmetry", "linearity", "invariance", "sensitivity"]


def exact(model, image, prototypes, options) -> Explained:
    """True Shapley values: every axiom must hold."""
    return from_attribution(estimate(game_of(model, image, prototypes, options), "exact"))


@pytest.fixture(scope="module")
def few(options, image):
    """Nine players, so that exact values are quick; axioms do not depend on how many there are."""
    return replace(on_grid(options, image), players=Players.windows(image.shape[1:], 8))


def violations(explainer, model, image, options, axioms=None) -> dict[str, AxiomCheck]:
    checks = check_axioms(explainer, model, image, (0, 3), options, axioms=axioms)
    return {check.axiom: check for check in checks}


def test_true_shapley_values_satisfy_every_axiom(model, image, few) -> None:
    checks = violations(exact, model, image, few)
    assert {name for name, check in checks.items() if check.passed} >= set(SHAPLEY)
    assert all(checks[name].violation < 1e-3 for name in SHAPLEY)


def test_log_similarity_breaks_linearity_even_for_true_values(model, image, few) -> None:
    check = violations(exact, model, image, few, ["linearity (log)"])["linearity (log)"]
    assert check.passed is False
    assert check.violation > 0.05


def broken_sum(model, image, prototypes, options) -> Explained:
    return replace(right := exact(model, image, prototypes, options), maps=1.2 * right.maps)


def leaking(model, image, prototypes, options) -> Explained:
    """A blur gives some of every value to the neighbors."""
    right = exact(model, image, prototypes, options)
    maps = torch.nn.functional.avg_pool2d(right.maps[None], 9, 1, 4, count_include_pad=False)[0]
    return replace(right, maps=maps)


def top_heavy(model, image, prototypes, options) -> Explained:
    """The upper rows count more."""
    right = exact(model, image, prototypes, options)
    return replace(right, maps=right.maps * torch.linspace(2, 0, image.shape[1])[:, None])


def without_sign(model, image, prototypes, options) -> Explained:
    return replace(right := exact(model, image, prototypes, options), maps=right.maps.abs())


def counting_layers(model, image, prototypes, options) -> Explained:
    """Looks at how the network is written."""
    right = exact(model, image, prototypes, options)
    network = getattr(model, "network", model)
    return replace(right, maps=right.maps * len(list(network.modules())))


def blind_in_one_eye(model, image, prototypes, options) -> Explained:
    """Nothing but the largest value survives."""
    right = exact(model, image, prototypes, options)
    largest = right.maps.abs().amax((1, 2), keepdim=True)
    return replace(right, maps=torch.where(right.maps.abs() == largest, right.maps, 0.0))


@pytest.mark.parametrize(
    ("axiom", "explainer"),
    [
        ("completeness", broken_sum),
        ("dummy", leaking),
        ("symmetry", top_heavy),
        ("linearity", without_sign),
        ("invariance", counting_layers),
        ("sensitivity", blind_in_one_eye),
    ],
)
def test_broken_explainers_are_flagged(model, image, few, axiom, explainer) -> None:
    check = violations(explainer, model, image, few, [axiom])[axiom]
    assert check.passed is False
    assert check.violation > 0.02


def test_the_size_of_a_violation_is_measured(model, image, few) -> None:
    assert violations(broken_sum, model, image, few)["completeness"].violation == pytest.approx(0.2, abs=1e-6)


def test_protopnets_own_map_breaks_completeness_and_dummy(model, image, few) -> None:
    checks = violations(EXPLAINERS["protopnet"], model, image, few)
    assert checks["completeness"].passed is False
    assert checks["dummy"].passed is False
    assert checks["invariance"].passed is True


def test_moment_propagation_keeps_dummies_but_depends_on_how_the_network_is_written(
    model, image, few
) -> None:
    checks = violations(EXPLAINERS["dasp"], model, image, few)
    assert all(checks[name].passed for name in ("dummy", "symmetry", "linearity", "sensitivity"))
    assert checks["invariance"].passed is False
    assert checks["linearity (log)"].passed is None  # there is no moment rule for it
    assert "moment rule" in checks["linearity (log)"].note


def test_sampling_passes_within_its_errors(model, image, few) -> None:
    sampled = replace(few, budget=256, players=Players.windows(image.shape[1:], 6))
    checks = violations(EXPLAINERS["ours"], model, image, sampled, SHAPLEY)
    assert [name for name, check in checks.items() if not check.passed] == []


@pytest.mark.parametrize(
    "name", ["integrated_gradients", "saliency", "smoothgrad", "protopnet_crop", "random"]
)
def test_every_axiom_gives_a_number_for_every_kind_of_explainer(model, image, few, name) -> None:
    for check in violations(EXPLAINERS[name], model, image, few).values():
        assert math.isfinite(check.violation)
        assert check.violation >= 0


def test_explanations_that_are_known_are_not_made_again(model, image, few) -> None:
    calls = []

    def counted(*arguments) -> Explained:
        calls.append(arguments)
        return exact(*arguments)

    own = exact(model, image, [0], few)
    check_axioms(counted, model, image, (0, 3), few, axioms=["completeness", "sensitivity"], own=own)
    assert calls == []


def test_the_grid_has_few_windows_whatever_the_image(options) -> None:
    for size in ((24, 24), (30, 50)):
        assert len(on_grid(options, torch.zeros(3, *size)).players) == 16


def test_all_axioms_of_the_paper_are_there() -> None:
    assert set(SHAPLEY) < set(AXIOMS)

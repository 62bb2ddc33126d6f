from __future__ import annotations

from dataclasses import replace

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.bench.settings import USUAL, make_settings


def test_what_is_not_given_is_as_usual_on_the_device() -> None:
    for device, usual in (("cpu", USUAL["cpu"]), ("cuda", USUAL["gpu"])):
        settings = make_settings((64, 64), device)
        assert settings.steps == usual["steps"]
        assert settings.options.budget == usual["budget"]
    assert make_settings((64, 64), "cpu", budget=100).options.budget == 100


def test_costs_decide_no_result_and_results_are_decided_by_all_else() -> None:
    settings = make_settings((64, 64), "cpu")
    decisive = settings.of_explainer("ours")
    cheaper = replace(settings, options=replace(settings.options, memory=10, batch_size=3, moment_batch=1))
    assert cheaper.of_explainer("ours") == decisive
    for change in ({"seed": 1}, {"budget": 7}, {"noise": 0.3}):
        other = replace(settings, options=replace(settings.options, **change))
        assert other.of_explainer("ours") != decisive
    assert make_settings((64, 64), "cpu", players=16).of_explainer("ours") != decisive


@pytest.mark.parametrize("side", ["superpixels", 64])
def test_players_must_be_windows_of_which_there_are_some(side) -> None:
    with pytest.raises(ProtoPFaithError, match="as players"):
        make_settings((64, 64), "cpu", players=side)

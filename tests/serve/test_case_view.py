"""The page of a case as it is opened."""

from __future__ import annotations

import httpx

from protopfaith.serve.case import Case
from protopfaith.serve.case_view import BLOCKS, case_view, region_choices, state_of
from protopfaith.serve.question import Question
from protopfaith.serve.server import Server
from tests.serve.conftest import found


def test_hidden_regions_come_back_with_the_link(served: Server, settled: tuple[httpx.Client, str]) -> None:
    client, name = settled
    resumable = found(served, name).resumable
    assert resumable is not None
    count = len(resumable.players)
    client.post(f"/case/{name}/hide", json={"regions": [2, 5], "count": count})
    assert 'data-hidden="[2, 5]"' in client.get(f"/case/{name}").text
    client.post(f"/case/{name}/hide", json={"regions": [], "count": count})
    assert 'data-hidden="[]"' in client.get(f"/case/{name}").text


def test_it_starts_with_what_was_written_so_far(played: Case) -> None:
    played.live.write({"answer": "<p>the answer</p>"})
    view = case_view(played, [played.network])
    assert tuple(view["blocks"]) == BLOCKS
    assert view["blocks"]["answer"] == "<p>the answer</p>"
    assert view["blocks"]["trust"] == ""
    assert played.decision is not None
    assert view["target"] == played.decision.target
    assert view["others"] == []


def test_regions_to_choose_from_have_those_of_the_case(played: Case) -> None:
    usual = dict(region_choices(played))
    sides = [int(name.partition(":")[2]) for name in usual if name.startswith("windows:")]
    assert sides == sorted(sides, reverse=True)
    assert "windows:16" in usual
    for asked in ("windows:5", "superpixels:17", "drawn"):
        played.question = Question(players=asked)
        assert region_choices(played)[:-1] == list(usual.items())
        assert region_choices(played)[-1][0] == asked


def test_a_list_says_how_far_a_case_is(played: Case) -> None:
    assert state_of(played).startswith(f"{played.evaluations:,} evaluations, strengths ")

"""Pages about a run: the confusion matrix and its images, and what other commands wrote."""

from __future__ import annotations

import re

import httpx

from protopfaith.explanation import explain_prototypes
from protopfaith.serve.run_pages import own_policy
from protopfaith.serve.server import Server
from tests.serve.conftest import wait_for


def test_the_confusion_matrix_counts_all_test_images(client: httpx.Client, served: Server) -> None:
    wait_for(lambda: None not in served.state.networks[0].predictions)
    page = client.get("/evaluation/0").text
    counts = [int(number) for number in re.findall(r'aria-label="(\d+) of', page)]
    network = served.state.networks[0]
    assert sum(counts) == len(network.test)
    true = int(network.test.labels[0])  # type: ignore[union-attr]
    cell = client.get(f"/evaluation/0?true={true}&predicted={network.predictions[0][0]}").text
    assert 'data-index="0"' in cell
    for odd in ("?true=x&predicted=1", "?true=99&predicted=0", "?true=../&predicted=1"):
        assert client.get(f"/evaluation/0{odd}").status_code == 200
    assert client.get("/evaluation/9").status_code == 400


def test_pages_that_are_not_there_name_their_command(client: httpx.Client) -> None:
    answer = client.get("/written/1/faithfulness")
    assert answer.status_code == 404
    assert "protopfaith faithfulness" in answer.text
    assert client.get("/written/0/recipe.yaml").status_code == 404
    assert client.get("/written/0/..%2frecipe.yaml").status_code == 404


def test_a_written_page_keeps_its_own_strict_policy(client: httpx.Client, served: Server) -> None:
    network = served.state.networks[1]
    run = network.explainer.run
    assert run is not None
    explain_prototypes(network.explainer, players=24, budget=64, nearest=2).save(run.folder / "prototypes")
    answer = client.get("/written/1/prototypes")
    assert answer.status_code == 200
    policy = answer.headers["Content-Security-Policy"]
    assert "sha256-" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


def test_a_page_that_allows_itself_more_may_do_nothing() -> None:
    for content in (
        "default-src *",
        "script-src 'unsafe-inline'",
        "default-src 'none'; connect-src http://x",
    ):
        text = f'<meta http-equiv="Content-Security-Policy" content="{content}">'
        assert own_policy(text) == "default-src 'none'; frame-ancestors 'none'"
    assert own_policy("") == "default-src 'none'; frame-ancestors 'none'"

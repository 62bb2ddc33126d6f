"""What the server answers, without a browser: from a question to a map, and back to where it was."""

from __future__ import annotations

import io
import time

import httpx
import torch
from PIL import Image

from protopfaith.explanation import Explainer
from protopfaith.explanation.picture import to_pil
from protopfaith.serve.server import Server
from tests.serve.conftest import ask, follow, wait_for


def test_the_decision_is_there_at_once(client: httpx.Client, served: Server) -> None:
    case = ask(client, 2)
    page = client.get(f"/case/{case}").text
    found = served.state.find(case)
    assert found is not None
    decision = found.decision
    assert decision is not None
    assert found.network.class_names[decision.target] in page
    assert "<svg" in page


def test_a_stream_ends_in_the_precision_asked_for(client: httpx.Client, served: Server) -> None:
    case = ask(client, 1)
    client.post(f"/case/{case}/continue", json={"precision": 0.3})
    blocks = follow(client, case)
    assert {"answer", "pictures", "bars", "progress", "evidence", "prototypes", "trust"} <= blocks.keys()
    found = served.state.find(case)
    assert found is not None
    assert found.result is not None
    assert found.result.precision <= 0.3
    wait_for(lambda: found.live.readers == 0)


def test_uploads_are_decided_as_files_are(client: httpx.Client, served: Server, explainer: Explainer) -> None:
    pixels = torch.randint(0, 255, (3, 60, 50), dtype=torch.uint8)
    buffer = io.BytesIO()
    to_pil(pixels).save(buffer, "PNG")
    answer = client.post(
        "/ask/file?run=0", content=buffer.getvalue(), headers={"X-File-Name": "a%20scan.png"}
    )
    case = served.state.find(answer.json()["case"])
    assert case is not None
    assert case.decision is not None
    assert case.picture.name == "a scan.png"
    assert case.picture.path == ""
    mine = explainer.explain(Image.open(buffer), players=24, budget=64, sources=False)
    assert torch.allclose(case.decision.logits.softmax(0), mine.probabilities)


def test_stop_and_continue(client: httpx.Client, served: Server) -> None:
    case = ask(client, 3)
    client.post(f"/case/{case}/stop")
    found = served.state.find(case)
    assert found is not None
    wait_for(lambda: found.stage == "stopped")
    client.post(f"/case/{case}/continue", json={"precision": 0.5})
    follow(client, case)
    assert found.result is not None
    before = found.evaluations
    client.post(f"/case/{case}/continue", json={"precision": found.result.precision / 1.5})
    follow(client, case)
    assert found.evaluations > before
    assert found.evaluations < 200_000


def test_who_leaves_stops_costing(client: httpx.Client, served: Server) -> None:
    case = ask(client, 4)
    client.post(f"/case/{case}/continue", json={"precision": 0.005})
    with client.stream("GET", f"/case/{case}/events") as stream:
        next(stream.iter_lines())
    found = served.state.find(case)
    assert found is not None
    wait_for(lambda: found.live.readers == 0)
    wait_for(lambda: served.state.worker.playing == 0)  # the slice that was going on has ended
    before = found.evaluations
    time.sleep(0.5)
    assert found.evaluations == before
    assert found.stage in ("playing", "done")


def test_hiding_regions_asks_the_network_again(client: httpx.Client, served: Server) -> None:
    case = ask(client, 5)
    client.post(f"/case/{case}/continue", json={"precision": 0.3})
    follow(client, case)
    found = served.state.find(case)
    assert found is not None
    assert found.resumable is not None
    count = len(found.resumable.players)
    answer = client.post(f"/case/{case}/hide", json={"regions": [0, 1], "count": count})
    assert "had predicted" in answer.json()["html"]
    for bad in ({"regions": [count], "count": count}, {"regions": [0], "count": 1}, {"count": count}):
        assert client.post(f"/case/{case}/hide", json=bad).status_code == 400


def test_cases_belong_to_their_visitor(client: httpx.Client, served: Server) -> None:
    case = ask(client, 6)
    assert case in client.get("/cases").text
    with httpx.Client(base_url=served.address) as other:
        assert case not in other.get("/cases").text
        assert other.get(f"/case/{case}").status_code == 200  # the link works for others


def test_what_is_gone_says_so(client: httpx.Client) -> None:
    assert client.get("/case/nothing").status_code == 404
    assert client.post("/case/nothing/stop").status_code == 404
    for number in ("-1", "x", "99", "9" * 5_000):
        assert client.get(f"/thumbnail/0/{number}").status_code in (400, 404)
        assert client.get(f"/thumbnail/{number}/0").status_code in (400, 404)
        assert client.get(f"/evaluation/{number}").status_code in (400, 404)
        assert client.get(f"/written/{number}/report.html").status_code in (400, 404)
    with client.stream("GET", "/case/nothing/events") as stream:
        assert "event: gone" in list(stream.iter_lines())

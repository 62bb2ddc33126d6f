"""What is read of a request, and one sentence for whatever goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from protopfaith.errors import ProtoPFaithError
from protopfaith.serve.bounds import Bounds
from protopfaith.serve.responses import (
    NOTHING,
    UNEXPECTED,
    GoneError,
    Receiving,
    TooLargeError,
    TooManyError,
    TooSlowError,
    errors_as_json,
    errors_as_page,
    read_body,
    read_message,
)
from tests.serve.conftest import BOUNDS


def test_large_uploads_are_refused_before_they_are_read(client: httpx.Client) -> None:
    answer = client.post("/ask/file?run=0", content=b"x" * (BOUNDS.upload + 1))
    assert answer.status_code == 413

    def endless() -> Iterator[bytes]:
        for _ in range(BOUNDS.upload // 2**16 + 10):
            yield b"x" * 2**16

    with suppress(httpx.WriteError):  # the server may have closed the connection already
        assert client.post("/ask/file?run=0", content=endless()).status_code == 413


@pytest.mark.parametrize("content", [b"[]", b"{", b"null", b'{"index": "../x"}', b'{"index": 99999}', b"{}"])
def test_broken_messages_are_one_sentence(client: httpx.Client, content: bytes) -> None:
    answer = client.post("/ask/test", content=content)
    assert answer.status_code == 400
    assert answer.json()["error"].endswith(".")


async def echo(request: Request) -> Response:
    return JSONResponse(await read_message(request, Bounds(body=100)))


async def length(request: Request) -> Response:
    return JSONResponse(len(await read_body(request, 100, 60)))


ERRORS = {
    "gone": (GoneError(), 404),
    "large": (TooLargeError(), 413),
    "many": (TooManyError(), 429),
    "slow": (TooSlowError(), 408),
    "wrong": (ProtoPFaithError("Give <another> one."), 400),
    "broken": (ValueError("/home/somebody/secret"), 500),
}


async def fail(request: Request) -> Response:
    raise ERRORS[request.path_params["how"]][0]


@pytest.fixture
def visitor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    """Of an app whose answers fail in every way."""
    monkeypatch.chdir(tmp_path)  # where tracebacks go
    routes = [
        Route("/echo", errors_as_json(echo), methods=["POST"]),
        Route("/length", errors_as_json(length), methods=["POST"]),
        Route("/script/{how}", errors_as_json(fail)),
        Route("/page/{how}", errors_as_page(fail)),
    ]
    return TestClient(Starlette(routes=routes), raise_server_exceptions=False)


@pytest.mark.parametrize("how", ERRORS)
def test_scripts_get_a_sentence(visitor: TestClient, how: str) -> None:
    error, status = ERRORS[how]
    answer = visitor.get(f"/script/{how}")
    assert answer.status_code == status
    said = answer.json()["error"]
    assert said.endswith(".")
    assert said == {"wrong": str(error), "broken": UNEXPECTED}.get(how, said)


@pytest.mark.parametrize(
    ("how", "status", "words"),
    [("gone", 404, NOTHING), ("wrong", 400, "Give &lt;another&gt; one."), ("broken", 500, "unexpected")],
)
def test_people_get_a_page(visitor: TestClient, how: str, status: int, words: str) -> None:
    answer = visitor.get(f"/page/{how}")
    assert answer.status_code == status
    assert answer.text.startswith("<!DOCTYPE html>")
    assert words in answer.text
    assert "secret" not in answer.text


@pytest.mark.parametrize(("count", "status"), [(100, 200), (101, 413)])
def test_a_body_is_read_up_to_its_limit_declared_or_not(visitor: TestClient, count: int, status: int) -> None:
    assert visitor.post("/length", content=b"x" * count).status_code == status
    assert visitor.post("/length", content=(b"x" for _ in range(count))).status_code == status


def test_no_message_is_an_empty_one(visitor: TestClient) -> None:
    assert visitor.post("/echo").json() == {}
    assert visitor.post("/echo", content=b'{"a": 1}').json() == {"a": 1}


def test_a_request_that_never_ends_is_given_up() -> None:
    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}

    request = Request({"type": "http", "headers": []}, receive)
    with pytest.raises(TooSlowError):
        asyncio.run(read_body(request, 10**6, 0.1))


def test_so_many_files_are_received_at_a_time_and_no_more() -> None:
    receiving = Receiving(1)
    with receiving, pytest.raises(TooManyError), receiving:
        pass
    with receiving:  # there is room again
        pass

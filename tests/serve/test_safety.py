"""The rules of safety: names, origins, tokens, paths, sizes, and what every answer carries."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import httpx
import pytest

from protopfaith.serve.safety import HEADERS, Door
from protopfaith.serve.server import Server, opened
from protopfaith.training import Run

TOKEN = "a-token-for-tests"


@pytest.fixture(scope="module")
def guarded(run: Run) -> Iterator[Server]:
    """A server that wants its token."""
    with opened([run.folder], port=0, device="cpu", token=TOKEN, say=lambda text: None) as server:
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        yield server
        server.stop()
        thread.join(timeout=20)


def base(server: Server) -> str:
    return server.address.partition("?")[0]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "", "127.0.0.1.evil.example", "192.168.0.1"]
)
def test_other_names_are_refused(served: Server, host: str) -> None:
    assert httpx.get(served.address, headers={"Host": host}).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_of_others_cannot_ask(client: httpx.Client, headers: dict[str, str]) -> None:
    answer = client.post("/ask/test", json={"run": 0, "index": 0}, headers=headers)
    assert answer.status_code == 403


@pytest.mark.parametrize("path", ["/", "/cases", "/static/explorer.js", "/nowhere", "/case/x", "/gallery"])
def test_every_answer_is_marked(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "unsafe" not in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/static/app.py",
        "/thumbnail/0/-1",
        "/thumbnail/9/0",
        "/thumbnail/0/99999999",
        "/thumbnail/0/..%2f..%2fetc%2fpasswd",
        "/case/..%2f..%2fetc/image/passwd",
        "/gallery?run=../x",
        "/gallery?start=-1",
        "/gallery?label=x",
    ],
)
def test_no_path_leads_anywhere_else(served: Server, path: str) -> None:
    port = served.address.rpartition(":")[2].strip("/")
    answer = raw_answer(int(port), f"GET {path} HTTP/1.1\r\nHost: localhost\r\n")
    status = int(answer.split()[1])
    assert 400 <= status < 500
    assert b"root:" not in answer
    assert b"import" not in answer


@pytest.mark.parametrize("content", [b"", b"GIF89a", b"\x89PNG\r\n\x1a\n broken", b"x" * 1000])
def test_broken_uploads_are_one_sentence(client: httpx.Client, content: bytes) -> None:
    answer = client.post("/ask/file?run=0", content=content, headers={"X-File-Name": "..%2F%3Cb%3E.png"})
    assert answer.status_code == 400
    assert "/tmp" not in answer.json()["error"]
    assert "../" not in answer.json()["error"]


def test_without_the_token_nothing_is_told(guarded: Server) -> None:
    for path in ("", "cases", "gallery", "thumbnail/0/0", "static/explorer.js", "?token=wrong"):
        assert httpx.get(base(guarded) + path).status_code == 403
    assert httpx.post(base(guarded) + "ask/test", json={"index": 0}).status_code == 403


def test_the_token_becomes_a_cookie_and_leaves_the_address(guarded: Server) -> None:
    with httpx.Client(follow_redirects=False) as client:
        answer = client.get(guarded.address)
        assert answer.status_code == 303
        assert TOKEN not in answer.headers["Location"]
        assert "HttpOnly" in answer.headers["Set-Cookie"]
        assert "SameSite=Strict" in answer.headers["Set-Cookie"]
        assert client.get(base(guarded)).status_code == 200


def test_the_token_sends_nobody_to_another_server(guarded: Server) -> None:
    host, port = base(guarded).removeprefix("http://").strip("/").split(":")
    answer = raw_answer(int(port), f"GET //evil.example/?token={TOKEN} HTTP/1.1\r\nHost: {host}\r\n")
    assert answer.startswith(b"HTTP/1.1 303")
    assert b"location: /evil.example/\r\n" in answer


def test_endless_headers_are_not_taken(served: Server) -> None:
    port = int(served.address.rpartition(":")[2].strip("/"))
    many = "".join(f"X-{number}: {'x' * 1000}\r\n" for number in range(200))
    with suppress(ConnectionError):  # the server hangs up, before or after it says so
        answer = raw_answer(port, f"GET / HTTP/1.1\r\nHost: localhost\r\n{many}")
        assert answer.startswith(b"HTTP/1.1 400")


def test_a_websocket_is_refused(served: Server) -> None:
    port = int(served.address.rpartition(":")[2].strip("/"))
    upgrade = (
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    )
    answer = raw_answer(port, f"GET /cases HTTP/1.1\r\nHost: localhost\r\n{upgrade}")
    assert b"101" not in answer.split(b"\r\n")[0]


def raw_answer(port: int, request: str) -> bytes:
    """What the server says to a request as it is written: clients tidy up."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as raw:
        with suppress(ConnectionError):  # it may have hung up already
            raw.sendall(f"{request}Connection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: raw.recv(65536), b""))


def test_an_open_server_knows_addresses_and_its_own_name_alone() -> None:
    door = Door("0.0.0.0", 1, "token")
    assert door.knows("192.168.1.5:8765")
    assert door.knows(socket.gethostname())
    assert door.knows("[::1]:8765")
    assert not door.knows("evil.example")


def test_other_methods_and_sockets_are_refused(client: httpx.Client) -> None:
    assert client.request("DELETE", "/cases").status_code == 405
    assert client.request("PUT", "/").status_code == 405

"""Who may talk to the server, and what pages may do: host, token, origin, and every answer's headers."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
METHODS = ("GET", "HEAD", "POST")
A_MONTH = 30 * 24 * 3600  # seconds


@dataclass(frozen=True)
class Door:
    """Who is let in.

    Args:
        host: the address that the server listens on.
        port: its port, which keeps the cookies of two servers apart.
        token: what visitors must know; None where nobody needs one.

    >>> Door("127.0.0.1", 8765).knows("localhost:8765"), Door("127.0.0.1", 8765).knows("evil.example")
    (True, False)
    """

    host: str
    port: int
    token: str | None = None

    @property
    def visitor_cookie(self) -> str:
        return f"protopfaith-visitor-{self.port}"

    @property
    def token_cookie(self) -> str:
        return f"protopfaith-token-{self.port}"

    def knows(self, named: str) -> bool:
        """Whether a Host header means this server. A page elsewhere that makes its own name point here
        still says its own name."""
        name = _without_port(named).lower()
        if is_local(self.host):
            return name == "localhost" or _is_loopback(name)
        return name in self._own_names or _is_address(name)

    @cached_property
    def _own_names(self) -> frozenset[str]:
        """Asked for once: a slow name server would hold up every visitor."""
        names = (self.host, "localhost", socket.gethostname(), socket.getfqdn())
        return frozenset(name.lower() for name in names)

    def opens_for(self, said: str | None) -> bool:
        """Whether a token is the right one."""
        return self.token is None or (
            said is not None and secrets.compare_digest(said.encode(), self.token.encode())
        )


class Guard:
    """Stands before the application: refuses what is not for it, and marks every answer.

    Args:
        app: the application.
        door: who is let in.
    """

    def __init__(self, app: App, door: Door):
        self.app, self.door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        refusal = self._refusal(request)
        visitor = request.cookies.get(self.door.visitor_cookie, "")
        is_new = not (20 <= len(visitor) <= 64 and visitor.replace("-", "").replace("_", "").isalnum())
        visitor = secrets.token_urlsafe(24) if is_new else visitor
        scope["visitor"] = visitor

        async def marked(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
                if is_new and refusal is None:
                    headers.append("Set-Cookie", _cookie(self.door.visitor_cookie, visitor))
            await send(message)

        await (refusal or self.app)(scope, receive, marked)

    def _refusal(self, request: Request) -> Response | None:
        """The answer to a request that is not let in."""
        headers = request.headers
        if not self.door.knows(headers.get("host", "")):
            return PlainTextResponse("This server does not go by that name.", 421)
        if request.method not in METHODS:
            return PlainTextResponse("Only GET and POST.", 405)
        if request.method == "POST" and not _is_own(headers):
            return PlainTextResponse("Another site's pages cannot ask anything here.", 403)
        if self.door.opens_for(request.cookies.get(self.door.token_cookie)):
            return None
        given = request.query_params.get("token")
        if request.method == "GET" and self.door.token is not None and self.door.opens_for(given):
            answer = RedirectResponse("/" + request.url.path.lstrip("/"), 303)  # // would name another server
            answer.headers.append("Set-Cookie", _cookie(self.door.token_cookie, self.door.token))
            return answer
        return PlainTextResponse(
            "This explorer needs its token: open the address that `protopfaith serve` printed.", 403
        )


def is_local(host: str) -> bool:
    """Whether only programs of this computer reach a server at that address.

    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("0.0.0.0")
    (True, True, False)
    """
    return host == "localhost" or _is_loopback(host)


def _is_own(headers: Headers) -> bool:
    """Whether a request comes from a page of this server, or from no page at all."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    return origin is None or origin.partition("://")[2] == headers.get("host", "")


def _cookie(name: str, value: str) -> str:
    return f"{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={A_MONTH}"


def _without_port(named: str) -> str:
    if named.startswith("["):
        return named[1:].partition("]")[0]
    return named.rpartition(":")[0] if named.count(":") == 1 else named


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(name: str) -> bool:
    return _is_address(name) and ipaddress.ip_address(name).is_loopback

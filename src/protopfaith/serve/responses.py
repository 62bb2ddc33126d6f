"""What all responses have in common: limits on what is read, and one sentence for whatever goes wrong."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from protopfaith.crashes import unexpected
from protopfaith.errors import ProtoPFaithError
from protopfaith.serve.bounds import Bounds
from protopfaith.serve.pages import render

logger = logging.getLogger("protopfaith")
UNEXPECTED = "Something unexpected went wrong; the server's log says more."
NOTHING = (
    "There is nothing at this address, or no longer. Cases are kept as long as the server runs and has room."
)

Answer = Callable[[Request], Awaitable[Response]]


class GoneError(Exception):
    """There is no such thing, or no longer."""


class TooLargeError(Exception):
    """More bytes than are taken."""


class TooManyError(Exception):
    """More at a time than is taken."""


class TooSlowError(Exception):
    """Whoever asks does not end."""


REFUSALS: dict[type[Exception], tuple[str, int]] = {
    GoneError: ("This is no longer kept on the server; ask again.", 404),
    TooLargeError: ("The file is too large for this server.", 413),
    TooManyError: ("Many others send images just now; try again in a moment.", 429),
    TooSlowError: ("The file took too long to arrive; try again.", 408),
}
"""What scripts are told, and the number that goes with it."""


class Receiving:
    """How many files are being received: each takes as much memory as it has come.

    Args:
        most: at a time
    """

    def __init__(self, most: int):
        self.most, self.now = most, 0

    def __enter__(self) -> None:
        if self.now >= self.most:
            raise TooManyError
        self.now += 1

    def __exit__(self, *_: object) -> None:
        self.now -= 1


async def read_body(request: Request, most: int, patience: float) -> bytes:
    """What a request sends; never more than `most` bytes are taken, nor waited for longer than `patience`."""
    try:
        return await asyncio.wait_for(_read_all(request, most), patience)
    except asyncio.TimeoutError as error:  # another class than TimeoutError in Python 3.10
        raise TooSlowError from error


async def _read_all(request: Request, most: int) -> bytes:
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > most:
        raise TooLargeError
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > most:
            raise TooLargeError
    return bytes(content)


async def read_message(request: Request, bounds: Bounds) -> dict[str, Any]:
    """The JSON object that a script sends."""
    content = await read_body(request, bounds.body, bounds.patience)
    try:
        said = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise ProtoPFaithError("The message cannot be read; load the page anew.")
    return said


def errors_as_json(answer: Answer) -> Answer:
    """For scripts: whatever goes wrong is one sentence in JSON."""

    async def safe(request: Request) -> Response:
        try:
            return await answer(request)
        except tuple(REFUSALS) as error:
            text, status = REFUSALS[type(error)]
            return JSONResponse({"error": text}, status)
        except ProtoPFaithError as error:
            return JSONResponse({"error": str(error)}, 400)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:
            logger.warning("%s", unexpected(error))
            return JSONResponse({"error": UNEXPECTED}, 500)

    return safe


def errors_as_page(answer: Answer) -> Answer:
    """For people: whatever goes wrong is a page."""

    async def safe(request: Request) -> Response:
        try:
            return await answer(request)
        except GoneError:
            return await not_found(request, None)
        except ProtoPFaithError as error:
            return error_page("This did not work", str(error), 400)
        except Exception as error:
            logger.warning("%s", unexpected(error))
            return error_page("This did not work", UNEXPECTED, 500)

    return safe


def error_page(title: str, text: str, status: int) -> Response:
    """A page that says what is wrong."""
    return HTMLResponse(render("error_page.html", page="", title=title, text=text), status)


async def not_found(request: Request, _: object) -> Response:
    """The page for addresses where nothing is."""
    return error_page("Nothing here", NOTHING, 404)

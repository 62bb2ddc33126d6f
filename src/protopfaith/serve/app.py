"""The application: which address answers what. Thin; everything that is computed lies elsewhere."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from protopfaith.crashes import unexpected
from protopfaith.errors import ProtoPFaithError
from protopfaith.serve.case import Case
from protopfaith.serve.desk import Desk
from protopfaith.serve.gallery import gallery_of
from protopfaith.serve.pages import FILES, file_content, render
from protopfaith.serve.question import precision_of, regions_of
from protopfaith.serve.safety import Door, Guard
from protopfaith.serve.uploads import PrivateFolder, shown_name
from protopfaith.serve.views import whatif_block
from protopfaith.show.wording.glossary import WORDS

logger = logging.getLogger("protopfaith")
BLOCKS = ("answer", "pictures", "bars", "progress", "evidence", "prototypes", "trust")
PRECISIONS = (0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01)  # the slider's steps, as in explorer.js
PATIENCE = 60.0  # seconds that a short question may wait for the network
PING = 10.0  # seconds between signs of life in a stream

UNEXPECTED = "Something unexpected went wrong; the server's log says more."
NOTHING = (
    "There is nothing at this address, or no longer. Cases are kept as long as the server runs and has room."
)

Answer = Callable[[Request], Awaitable[Response]]


class GoneError(Exception):
    """There is no such case, or no longer."""


class TooLargeError(Exception):
    """More bytes than are taken."""


def make_app(desk: Desk, folder: PrivateFolder, door: Door) -> Guard:
    """The application of one server.

    Args:
        desk: where cases are kept.
        folder: where uploads are decoded.
        door: who is let in.
    """
    pages = Pages(desk, folder)
    routes = [
        Route("/", _kindly(pages.start)),
        Route("/static/{name}", _kindly(pages.file)),
        Route("/gallery", _plainly(pages.gallery)),
        Route("/thumbnail/{run:int}/{index:int}", _plainly(pages.thumbnail)),
        Route("/ask/test", _plainly(pages.ask_test), methods=["POST"]),
        Route("/ask/file", _plainly(pages.ask_file), methods=["POST"]),
        Route("/cases", _kindly(pages.cases)),
        Route("/case/{case}", _kindly(pages.case)),
        Route("/case/{case}/events", pages.events),
        Route("/case/{case}/image/{name}", _plainly(pages.image)),
        Route("/case/{case}/stop", _plainly(pages.stop), methods=["POST"]),
        Route("/case/{case}/continue", _plainly(pages.go_on), methods=["POST"]),
        Route("/case/{case}/hide", _plainly(pages.hide), methods=["POST"]),
    ]
    return Guard(Starlette(routes=routes, exception_handlers={404: _not_found}), door)


class Pages:
    """The answers to all requests.

    Args:
        desk: where cases are kept.
        folder: where uploads are decoded.
    """

    def __init__(self, desk: Desk, folder: PrivateFolder):
        self.desk, self.folder = desk, folder

    async def start(self, request: Request) -> Response:
        megabytes = self.desk.bounds.upload // 2**20
        page = render(
            "start.html",
            page="start",
            networks=self.desk.networks,
            megabytes=megabytes,
            keep=self.folder.keep,
        )
        return HTMLResponse(page)

    async def file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in FILES:
            raise GoneError
        content, kind = file_content(name)
        return Response(content, media_type=kind, headers={"Cache-Control": "no-cache"})

    async def gallery(self, request: Request) -> Response:
        asked = request.query_params
        network = self.desk.network(asked.get("run", "0"))
        found = gallery_of(
            network, asked.get("label", ""), asked.get("wrong") == "1", asked.get("start", "0")
        )
        return JSONResponse(found)

    async def thumbnail(self, request: Request) -> Response:
        network = self.desk.network(request.path_params["run"])
        content = await run_in_threadpool(network.thumbnail, request.path_params["index"])
        return Response(content, media_type="image/png", headers={"Cache-Control": "private, max-age=3600"})

    async def ask_test(self, request: Request) -> Response:
        said = await self._message(request)
        network = self.desk.network(said.get("run", 0))
        index = said.get("index")
        if type(index) is not int:
            raise ProtoPFaithError("A test image is named by its number.")
        pixels, label = network.test_image(index)
        name = f"test image {index}"
        case = await run_in_threadpool(
            self.desk.open, network, pixels, name, request.scope["visitor"], label=label
        )
        return await self._opened(case)

    async def ask_file(self, request: Request) -> Response:
        network = self.desk.network(request.query_params.get("run", "0"))
        content = await _body(request, self.desk.bounds.upload)
        name = shown_name(unquote(request.headers.get("x-file-name", "image"))[:400])
        case = await run_in_threadpool(self._open_file, network, content, name, request.scope["visitor"])
        return await self._opened(case)

    def _open_file(self, network: Any, content: bytes, name: str, visitor: str) -> Case:
        image = self.folder.decode(content, name, network.explainer.preprocessing)
        return self.desk.open(network, image, name, visitor)

    async def _opened(self, case: Case) -> Response:
        future = self.desk.decide(case)
        with suppress(asyncio.TimeoutError):  # the page waits longer
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), PATIENCE)
        return JSONResponse({"case": case.id, "url": f"/case/{case.id}"})

    async def cases(self, request: Request) -> Response:
        cases = [
            {"id": case.id, "name": case.picture.name, "title": _title(case), "state": _state(case)}
            for case in self.desk.cases_of(request.scope["visitor"])
        ]
        return HTMLResponse(render("cases.html", page="cases", cases=cases))

    async def case(self, request: Request) -> Response:
        case = self._case(request)
        _, written = case.board.since(0)
        blocks = {name: written.get(name, "") for name in BLOCKS}
        step = min(range(len(PRECISIONS)), key=lambda i: abs(PRECISIONS[i] - case.precision))
        page = render(
            "ask.html",
            page="case",
            case=case,
            name=f"{_title(case)} {case.picture.name}",
            blocks=blocks,
            precision_step=step,
            words=WORDS,
        )
        return HTMLResponse(page)

    async def events(self, request: Request) -> Response:
        try:
            case = self._case(request)
        except GoneError:
            return StreamingResponse(_gone(), media_type="text/event-stream")
        last = request.headers.get("last-event-id", "")
        seen = int(last) if last.isdecimal() and len(last) < 12 else 0
        return StreamingResponse(self._stream(case, seen), media_type="text/event-stream")

    async def _stream(self, case: Case, seen: int) -> AsyncIterator[str]:
        """What is written on the board, as it comes. It ends after a while: a page that lives opens it
        again, one that was cut off does not, and then its game stops."""
        bell = case.board.join()
        end = asyncio.get_running_loop().time() + self.desk.bounds.stream
        try:
            self.desk.worker.enter(case)
            yield "retry: 500\n\n"
            while True:
                bell.clear()
                seen, new = case.board.since(seen)
                if new:
                    yield f"id: {seen}\nevent: blocks\ndata: {json.dumps(new)}\n\n"
                left = end - asyncio.get_running_loop().time()
                if left <= 0 or self.desk.find(case.id) is None:
                    return
                try:
                    await asyncio.wait_for(bell.wait(), min(PING, left))
                except asyncio.TimeoutError:
                    yield ": alive\n\n"
        finally:
            case.board.leave(bell)

    async def image(self, request: Request) -> Response:
        content = self._case(request).images.get(request.path_params["name"])
        if content is None:
            raise GoneError
        kind = "image/png" if content.startswith(b"\x89PNG") else "image/jpeg"
        return Response(content, media_type=kind, headers={"Cache-Control": "private, max-age=3600"})

    async def stop(self, request: Request) -> Response:
        self._case(request).stop()
        return JSONResponse({})

    async def go_on(self, request: Request) -> Response:
        said, case = await self._message(request), self._case(request)
        case.go_on(precision_of(said.get("precision", case.precision)))
        return JSONResponse({})

    async def hide(self, request: Request) -> Response:
        said, case = await self._message(request), self._case(request)
        sittings = case.sittings
        if sittings is None or said.get("count") != len(sittings.players):
            raise ProtoPFaithError("The map has finer regions now; choose them anew.")
        hidden = regions_of(said.get("regions"), len(sittings.players))

        def answer() -> str:
            return whatif_block(case, case.without(hidden))

        html = await asyncio.wrap_future(self.desk.soon(case, answer))
        return JSONResponse({"html": html})

    def _case(self, request: Request) -> Case:
        case = self.desk.find(request.path_params["case"])
        if case is None:
            raise GoneError
        return case

    async def _message(self, request: Request) -> dict[str, Any]:
        content = await _body(request, self.desk.bounds.body)
        try:
            said = json.loads(content or b"{}")
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise ProtoPFaithError("The message cannot be read; load the page anew.")
        return said


async def _gone() -> AsyncIterator[str]:
    yield "event: gone\ndata: {}\n\n"


async def _body(request: Request, most: int) -> bytes:
    """What a request sends; never more than `most` bytes are taken."""
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > most:
        raise TooLargeError
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > most:
            raise TooLargeError
    return bytes(content)


def _title(case: Case) -> str:
    if case.decision is None:
        return ""
    names = case.network.class_names
    versus = "" if case.decision.versus is None else f" and not {names[case.decision.versus]}"
    return f"Why {names[case.decision.target]}{versus}?"


def _state(case: Case) -> str:
    if case.result is None:
        return case.stage
    return f"{case.evaluations:,} evaluations, error about {case.result.precision:.0%}"


def _plainly(answer: Answer) -> Answer:
    """For scripts: whatever goes wrong is one sentence in JSON."""

    async def safe(request: Request) -> Response:
        try:
            return await answer(request)
        except GoneError:
            return JSONResponse({"error": "This is no longer kept on the server; ask again."}, 404)
        except TooLargeError:
            return JSONResponse({"error": "The file is too large for this server."}, 413)
        except ProtoPFaithError as error:
            return JSONResponse({"error": str(error)}, 400)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:
            text = unexpected(error)
            logger.warning("%s", text)
            return JSONResponse(
                {"error": "Something unexpected went wrong; the server's log says more."}, 500
            )

    return safe


def _kindly(answer: Answer) -> Answer:
    """For people: whatever goes wrong is a page."""

    async def safe(request: Request) -> Response:
        try:
            return await answer(request)
        except GoneError:
            return await _not_found(request, None)
        except Exception as error:
            known = isinstance(error, ProtoPFaithError)
            text = str(error) if known else unexpected(error)
            if not known:
                logger.warning("%s", text)
                text = UNEXPECTED
            page = render("sorry.html", page="", title="This did not work", text=text)
            return HTMLResponse(page, 400 if known else 500)

    return safe


async def _not_found(request: Request, _: object) -> Response:
    return HTMLResponse(render("sorry.html", page="", title="Nothing here", text=NOTHING), 404)

"""All addresses of a case: its page and its stream, stop and go, hiding, changing, comparing, saving."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Generator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from protopfaith.errors import ProtoPFaithError
from protopfaith.serve.background_job import BackgroundJob
from protopfaith.serve.case import Case
from protopfaith.serve.case_view import case_view, state_of
from protopfaith.serve.compare import chosen, compare_pieces
from protopfaith.serve.networks import Network
from protopfaith.serve.pages import render
from protopfaith.serve.prototype_detail import detail_pieces
from protopfaith.serve.question import Question, precision_of, regions_of
from protopfaith.serve.responses import GoneError, errors_as_json, errors_as_page, read_message
from protopfaith.serve.saving import KINDS, MEANINGS, save_pieces
from protopfaith.serve.state import ServerState
from protopfaith.serve.uploads import PrivateFolder
from protopfaith.serve.views import whatif_block
from protopfaith.show.wording.glossary import WORDS

PATIENCE = 60.0  # seconds that a short question may wait for the network
PING = 10.0  # seconds between signs of life in a stream
LOOK = 1.0  # seconds between looks whether somebody still waits


class CasePages:
    """The answers to requests about cases.

    Args:
        state: where cases are kept.
        folder: where files are made.
    """

    def __init__(self, state: ServerState, folder: PrivateFolder):
        self.state, self.folder = state, folder

    def routes(self) -> list[Route]:
        """Which address answers what."""
        posts = {
            "stop": self.stop,
            "continue": self.go_on,
            "hide": self.hide,
            "change": self.change,
            "beside": self.ask_beside,
            "prototype": self.portrait,
            "compare": self.compare,
            "save": self.save,
        }
        return [
            Route("/cases", errors_as_page(self.cases)),
            Route("/beside/{case}/{other}", errors_as_page(self.beside)),
            Route("/case/{case}", errors_as_page(self.page)),
            Route("/case/{case}/events", self.events),
            Route("/case/{case}/image/{name}", errors_as_json(self.image)),
            Route("/case/{case}/saved/{name}", errors_as_json(self.saved)),
            *(
                Route(f"/case/{{case}}/{name}", errors_as_json(answer), methods=["POST"])
                for name, answer in posts.items()
            ),
        ]

    async def opened(self, case: Case) -> Response:
        """The address of a new case, once it is decided."""
        future = self.state.decide(case)
        with suppress(asyncio.TimeoutError):  # the page waits longer
            await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), PATIENCE)
        return JSONResponse({"case": case.id, "url": f"/case/{case.id}"})

    async def cases(self, request: Request) -> Response:
        cases = [
            {
                "id": case.id,
                "name": case.picture.name,
                "network": case.network.name,
                "title": case.title,
                "state": state_of(case),
            }
            for case in self.state.cases_of(request.scope["visitor"])
        ]
        return HTMLResponse(render("cases.html", page="cases", networks=self.state.networks, cases=cases))

    async def page(self, request: Request) -> Response:
        case = self._case(request)
        view = case_view(case, self.state.networks)
        name = f"{case.title} {case.picture.name}".strip()
        page = render("ask.html", page="case", networks=self.state.networks, name=name, words=WORDS, **view)
        return HTMLResponse(page)

    async def beside(self, request: Request) -> Response:
        cases = [self._case(request), self._case(request, "other")]
        views = [case_view(case, ()) for case in cases]
        page = render("beside.html", page="case", networks=self.state.networks, views=views, words=WORDS)
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
        """What is written to the live blocks, as it comes. It ends after a while: a page that lives opens it
        again, one that was cut off does not, and then its game stops."""
        bell = case.live.join()
        end = asyncio.get_running_loop().time() + self.state.bounds.stream
        try:
            self.state.worker.enter(case)
            yield "retry: 500\n\n"
            while True:
                bell.clear()
                seen, new = case.live.since(seen)
                if new:
                    yield f"id: {seen}\nevent: blocks\ndata: {json.dumps(new)}\n\n"
                left = end - asyncio.get_running_loop().time()
                if left <= 0 or self.state.find(case.id) is None:
                    return
                try:
                    await asyncio.wait_for(bell.wait(), min(PING, left))
                except asyncio.TimeoutError:
                    yield ": alive\n\n"
        finally:
            case.live.leave(bell)

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
        shown = case.shown
        if shown is None or said.get("count") != len(shown.resumable.players):
            raise ProtoPFaithError("The map has finer regions now; choose them anew.")
        hidden = regions_of(said.get("regions"), len(shown.resumable.players))
        if not hidden:
            case.hidden = ()
            return JSONResponse({"html": ""})
        html = await asyncio.wrap_future(
            self.state.soon(case, lambda: whatif_block(case, case.without(shown, hidden)))
        )
        return JSONResponse({"html": html})

    async def change(self, request: Request) -> Response:
        """The same image with another question."""
        said, case = await self._message(request), self._case(request)
        question = Question.of(said, len(case.network.class_names), case.question)
        visitor = request.scope["visitor"]
        known = self.state.same(case, question, visitor)
        if known is not None:
            return JSONResponse({"case": known.id, "url": f"/case/{known.id}"})
        new = await run_in_threadpool(
            self.state.open,
            case.network,
            case.picture.original,
            case.picture.name,
            visitor,
            question=question,
            known=case.known,
        )
        return await self.opened(new)

    async def ask_beside(self, request: Request) -> Response:
        """The same image under another network."""
        said, case = await self._message(request), self._case(request)
        network = self.state.network(said.get("run"))
        same = (network.class_names, network.outcome) == (case.network.class_names, case.network.outcome)
        other = await run_in_threadpool(
            self.state.open,
            network,
            case.picture.original,
            case.picture.name,
            request.scope["visitor"],
            question=question_beside(case, network) if same else None,
            known=case.known if same else None,
        )
        await self.opened(other)
        return JSONResponse({"url": f"/beside/{case.id}/{other.id}"})

    async def portrait(self, request: Request) -> Response:
        said, case = await self._message(request), self._decided(request)
        html = await self._result_of(request, detail_pieces(case, _number(said.get("prototype"))))
        return JSONResponse({"html": html})

    async def compare(self, request: Request) -> Response:
        said, case = await self._message(request), self._decided(request)
        names = chosen(said.get("explainers"))
        html = await self._result_of(request, compare_pieces(case, _number(said.get("prototype")), names))
        return JSONResponse({"html": html})

    async def save(self, request: Request) -> Response:
        case = self._decided(request)
        if case.result is None:
            raise ProtoPFaithError("Wait for the first map before saving it.")
        case.saved = await self._result_of(
            request, save_pieces(case, self.folder.path, keep=self.folder.keep)
        )
        files = {name: meaning for name, meaning in MEANINGS.items() if name in case.saved}
        return JSONResponse({"html": render("blocks/saved.html", case=case, files=files)})

    async def saved(self, request: Request) -> Response:
        name, files = request.path_params["name"], self._case(request).saved
        if name not in KINDS or name not in files:
            raise GoneError
        kept = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(files[name], media_type=KINDS[name], headers=kept)

    async def _result_of(self, request: Request, pieces: Generator[None, None, Any]) -> Any:
        """The result of longer work, which is given up when nobody waits for it any more."""
        job = BackgroundJob(request.scope["visitor"], pieces)
        self.state.worker.enter(job)
        return await _waited(request, job.result)

    def _case(self, request: Request, name: str = "case") -> Case:
        case = self.state.find(request.path_params[name])
        if case is None:
            raise GoneError
        return case

    def _decided(self, request: Request) -> Case:
        case = self._case(request)
        if case.decision is None:
            raise ProtoPFaithError("Wait for the network's decision first.")
        return case

    async def _message(self, request: Request) -> dict[str, Any]:
        return await read_message(request, self.state.bounds)


async def _waited(request: Request, future: Future[Any]) -> Any:
    waiting = asyncio.wrap_future(future)
    while True:
        done, _ = await asyncio.wait({waiting}, timeout=LOOK)
        if done:
            return waiting.result()
        if await request.is_disconnected():
            future.cancel()
            raise GoneError


async def _gone() -> AsyncIterator[str]:
    yield "event: gone\ndata: {}\n\n"


def _number(value: Any) -> int:
    if type(value) is not int:
        raise ProtoPFaithError("A prototype is named by its number.")
    return value


def question_beside(case: Case, network: Network) -> Question:
    """The question of a case, for another network of the same classes: maps beside each other answer one.

    Args:
        case: whose question it is
        network: the other one, which may choose another class by itself, and see images at another size
    """
    asked = case.question
    if asked.versus is not None and case.decision is not None:
        asked = replace(asked, target=case.decision.target)
    alike = network.explainer.size == case.network.explainer.size
    return asked if alike or not asked.players.startswith("windows") else replace(asked, players="")

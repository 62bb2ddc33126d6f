"""The application: which address answers what. Thin; everything that is computed lies elsewhere."""

from __future__ import annotations

from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from protopfaith.errors import ProtoPFaithError
from protopfaith.serve.case import Case
from protopfaith.serve.case_pages import CasePages
from protopfaith.serve.gallery import gallery_of
from protopfaith.serve.networks import Network
from protopfaith.serve.pages import FILES, file_content, render
from protopfaith.serve.question import is_short_number
from protopfaith.serve.responses import (
    GoneError,
    Receiving,
    errors_as_json,
    errors_as_page,
    not_found,
    read_body,
    read_message,
)
from protopfaith.serve.run_pages import RunPages
from protopfaith.serve.safety import Door, Guard
from protopfaith.serve.state import ServerState
from protopfaith.serve.uploads import PrivateFolder, shown_name


def make_app(state: ServerState, folder: PrivateFolder, door: Door) -> Guard:
    """The application of one server.

    Args:
        state: where cases are kept.
        folder: where uploads are decoded.
        door: who is let in.
    """
    cases = CasePages(state, folder)
    routes = [*StartPages(state, folder, cases).routes(), *cases.routes(), *RunPages(state).routes()]
    return Guard(Starlette(routes=routes, exception_handlers={404: not_found}), door)


class StartPages:
    """The answers to requests before there is a case.

    Args:
        state: where cases are kept.
        folder: where uploads are decoded.
        cases: where new cases go.
    """

    def __init__(self, state: ServerState, folder: PrivateFolder, cases: CasePages):
        self.state, self.folder, self.cases = state, folder, cases
        self.receiving = Receiving(state.bounds.uploads)

    def routes(self) -> list[Route]:
        """Which address answers what."""
        return [
            Route("/", errors_as_page(self.start)),
            Route("/static/{name}", errors_as_page(self.file)),
            Route("/gallery", errors_as_json(self.gallery)),
            Route("/thumbnail/{run}/{index}", errors_as_json(self.thumbnail)),
            Route("/ask/test", errors_as_json(self.ask_test), methods=["POST"]),
            Route("/ask/file", errors_as_json(self.ask_file), methods=["POST"]),
        ]

    async def start(self, request: Request) -> Response:
        page = render(
            "start.html",
            page="start",
            networks=self.state.networks,
            megabytes=self.state.bounds.upload // 2**20,
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
        network = self.state.network(asked.get("run", "0"))
        wrong = asked.get("wrong") == "1"
        label, start = asked.get("label", ""), asked.get("start", "0")
        return JSONResponse(await run_in_threadpool(gallery_of, network, label, wrong, start))

    async def thumbnail(self, request: Request) -> Response:
        network, index = self.state.network(request.path_params["run"]), request.path_params["index"]
        if not is_short_number(index):
            raise GoneError
        content = await run_in_threadpool(network.thumbnail, int(index))
        return Response(content, media_type="image/png", headers={"Cache-Control": "private, max-age=3600"})

    async def ask_test(self, request: Request) -> Response:
        said = await read_message(request, self.state.bounds)
        network, index = self.state.network(said.get("run", 0)), said.get("index")
        if type(index) is not int:
            raise ProtoPFaithError("A test image is named by its number.")
        pixels, known = network.test_image(index)
        visitor = request.scope["visitor"]
        case = await run_in_threadpool(
            self.state.open, network, pixels, f"test image {index}", visitor, known=known
        )
        return await self.cases.opened(case)

    async def ask_file(self, request: Request) -> Response:
        network = self.state.network(request.query_params.get("run", "0"))
        bounds = self.state.bounds
        with self.receiving:
            content = await read_body(request, bounds.upload, bounds.patience)
        name = shown_name(unquote(request.headers.get("x-file-name", "image"))[:400])
        case = await run_in_threadpool(self._open_file, network, content, name, request.scope["visitor"])
        return await self.cases.opened(case)

    def _open_file(self, network: Network, content: bytes, name: str, visitor: str) -> Case:
        preprocessing = network.explainer.preprocessing
        assert preprocessing is not None
        image = self.folder.decode(content, name, preprocessing)
        return self.state.open(network, image, name, visitor)

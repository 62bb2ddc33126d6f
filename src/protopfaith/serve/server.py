"""The server: loads the runs, listens, and cleans up behind itself."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from protopfaith.annotations import check_arguments
from protopfaith.data.registry import is_drawn
from protopfaith.devices import choose_device
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer
from protopfaith.files import reason
from protopfaith.serve.bounds import Bounds
from protopfaith.serve.case import Case
from protopfaith.serve.cleanup import every
from protopfaith.serve.networks import Network, run_name
from protopfaith.serve.pace import GOALS
from protopfaith.serve.question import FINEST, Question
from protopfaith.serve.state import ServerState, write_answer
from protopfaith.serve.uploads import PrivateFolder
from protopfaith.serve.worker import Worker
from protopfaith.specs import check_token
from protopfaith.training import Run

if TYPE_CHECKING:
    import uvicorn

PORT = 8765
MISSING = "The explorer needs Starlette and uvicorn; install them with: pip install 'protopfaith[serve]'."
PATIENCE = 3  # seconds for open connections at the end


def serve(
    runs: Sequence[Path | str],
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    token: str | None = None,
    root: Path | str | None = None,
    device: str = "auto",
    keep: bool = False,
    browser: bool = False,
    say: Callable[[str], None] = print,
) -> None:
    """Serves the explorer until it is interrupted.

    Args:
        runs: folders of trained runs.
        host: the address to listen on; one that others can reach needs a token.
        port: the port to listen on; 0 for any that is free.
        token: what visitors must know; made up where it is needed and not given.
        root: where the runs' images lie now, if they moved.
        device: where to compute.
        keep: whether uploads stay in their private folder at the end.
        browser: whether to open the page in a browser.
        say: gets the lines for the person who started it.

    >>> serve(["runs/birds"], browser=True)  # doctest: +SKIP
    """
    check_arguments(serve, locals())
    with opened(
        runs, host=host, port=port, token=token, root=root, device=device, keep=keep, say=say
    ) as server:
        if browser and _has_display():
            threading.Timer(0.5, webbrowser.open, [server.address]).start()
        server.run()


class Server:
    """A server that is ready to run.

    Args:
        server: uvicorn's.
        listening: its socket.
        address: of its start page, with the token where there is one.
        state: where its cases are kept.
        folder: where uploads are decoded.
    """

    def __init__(
        self,
        server: uvicorn.Server,
        listening: socket.socket,
        address: str,
        *,
        state: ServerState,
        folder: PrivateFolder,
    ):
        self.server, self.listening, self.address = server, listening, address
        self.state, self.folder = state, folder

    def run(self) -> None:
        """Until it is interrupted, or `stop` is called."""
        self.server.run(sockets=[self.listening])

    def stop(self) -> None:
        self.server.should_exit = True


@contextmanager
def opened(
    runs: Sequence[Path | str],
    *,
    host: str = "127.0.0.1",
    port: int = PORT,
    token: str | None = None,
    root: Path | str | None = None,
    device: str = "auto",
    keep: bool = False,
    bounds: Bounds | None = None,
    say: Callable[[str], None] = print,
) -> Iterator[Server]:
    """A server with its networks loaded and its port taken; arguments are those of `serve`."""
    try:
        import uvicorn

        from protopfaith.serve.app import make_app
        from protopfaith.serve.safety import Door, is_local
    except ImportError as error:
        raise ProtoPFaithError(MISSING) from error
    if not is_local(host) and token is None:
        token = secrets.token_urlsafe(18)
    check_token(token)
    bounds = bounds or Bounds()
    with (
        _listening(host, port) as listening,
        PrivateFolder(keep) as folder,
        Worker(bounds.waiting, _leave_a_core) as worker,
    ):
        networks = _networks(runs, root, device)
        for network in networks:
            case = worker.ask("", partial(_warm_up, network, bounds)).result()
            if network.explainer.device.type != "cpu":
                worker.when_idle(partial(_warm_further, case))
        for network in networks:
            worker.when_idle(network.classify_some)
        actual = listening.getsockname()[1]
        state = ServerState(networks, worker, bounds)
        config = uvicorn.Config(
            make_app(state, folder, Door(host, actual, token)),
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            http="h11",  # it takes no more than 64 kB of headers
            limit_concurrency=bounds.connections,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=PATIENCE,
        )
        address = f"http://{_named(host)}:{actual}/" + ("" if token is None else f"?token={token}")
        _announce(say, host, address, token, is_local(host))
        if keep:
            say(f"Uploads are kept in {folder.path}, which only you can read.")
        with every(bounds.cleanup, state.sweep):
            yield Server(uvicorn.Server(config), listening, address, state=state, folder=folder)


def _networks(runs: Sequence[Path | str], root: Path | str | None, device: str) -> list[Network]:
    if not len(runs):
        raise ProtoPFaithError("There is no run to serve; give the folder of a training.")
    chosen: Any = choose_device(device)
    networks = []
    for number, run in enumerate(runs):
        drawn = len(runs) > 1 and is_drawn(Run(run).recipe().data.name)  # the folder is that of the others
        explainer = Explainer(run, root=None if drawn else root, device=chosen)
        _ = explainer.reference, explainer.weights_hash  # read now: the first visitor does not wait for them
        networks.append(Network(number, explainer, run_name(Path(run))))
    names = [network.name for network in networks]
    for network in networks:
        if names.count(network.name) > 1:
            network.name = f"{network.name} ({network.number + 1})"
    return networks


def _warm_up(network: Network, bounds: Bounds) -> Case:
    """One question to nobody: what the first one takes longer is over when visitors come. The image is noise,
    as one without anything on it would be explained at once."""
    blank = network.explainer.blank()
    noise = torch.randn(blank.shape, generator=torch.Generator().manual_seed(0)).to(blank)
    case = Case(network, network.explainer.open(noise), Question(), "", bounds=bounds)
    case.precision, case.on_answer = FINEST, write_answer
    case.decide()
    case.play()
    return case


def _warm_further(case: Case) -> bool:
    """Another slice of it: a GPU prepares itself for every size of a batch, so all that a visitor's map plays
    are played once before; whether there are more."""
    case.play()
    return case.stage == "playing" and case.evaluations < GOALS[-1]


def _leave_a_core() -> None:
    """One core stays free for pages: a network that uses all of them makes everything stutter. Threads count
    theirs apart, so this is for the worker to call."""
    torch.set_num_threads(max(1, min(torch.get_num_threads(), (os.cpu_count() or 2) - 1)))


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        taken = socket.create_server((host, port), family=family)
    except (OSError, OverflowError, UnicodeError) as error:
        raise ProtoPFaithError(
            f"The server cannot listen on {host}, port {port} ({reason(error)}); give another --port (0 for "
            "any that is free) or --host."
        ) from error
    with taken:
        yield taken


def _announce(say: Callable[[str], None], host: str, address: str, token: str | None, local: bool) -> None:
    if not local:
        say(f"Everybody who can reach {host} and knows the token can ask; connections are not encrypted.")
    say(f"The explorer: {address}")
    say("Stop it with Ctrl-C.")


def _named(host: str) -> str:
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def _has_display() -> bool:
    return sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )

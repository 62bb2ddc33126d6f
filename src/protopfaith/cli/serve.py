"""`protopfaith serve`: ask the network in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from protopfaith.cli.app import app, note, say
from protopfaith.cli.checks import check_run
from protopfaith.cli.options import Device, MovedRoot
from protopfaith.specs import check_token


@app.command()
def serve(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of trained runs.")],
    host: Annotated[
        str, typer.Option(help="The address to listen on; one that others can reach needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any free one.")] = 8765,
    token: Annotated[
        str | None,
        typer.Option(help="What visitors must know; made up and printed if one is needed and none is given."),
    ] = None,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Keep uploaded images in a private folder."),
    ] = False,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open the page in a browser.")
    ] = False,
    root: MovedRoot = None,
    device: Device = "auto",
) -> None:
    """Ask the network in a browser: try an image, watch its map sharpen, hide regions and ask again."""
    for run in runs:
        check_run(run, root)
    check_token(token)
    note(f"Loading {', '.join(map(str, runs))} ...")
    from protopfaith.serve import serve as run_server

    run_server(
        runs,
        host=host,
        port=port,
        token=token,
        root=root,
        device=device,
        keep=keep,
        browser=not no_browser,
        say=say,
    )

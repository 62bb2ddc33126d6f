"""Pages about a run: how good it is, and what was written about its prototypes and its explainers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from protopfaith.files import is_file
from protopfaith.serve.finding_pages import finding_cell, finding_evaluation
from protopfaith.serve.networks import Network
from protopfaith.serve.pages import render
from protopfaith.serve.responses import GoneError, errors_as_page
from protopfaith.serve.state import ServerState
from protopfaith.show.encoding import data_uri
from protopfaith.show.wording.numbers import percent

WRITTEN = {
    "prototypes": "prototypes/prototypes.html",
    "faithfulness": "faithfulness/index.html",
}
"""Where the commands of these names write their pages, in a run's folder."""
LARGEST = 200 * 2**20  # bytes of such a page
RELIABILITY = "evaluation/test-reliability.png"  # in a run's folder, written by `protopfaith evaluate`
LARGEST_PICTURE = 8 * 2**20  # bytes
# What pages of ours allow themselves: their own style and script, by hash, and images inside the page.
POLICY = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]*)"')
HARMLESS = re.compile(r"[a-z-]+-src( ('none'|data:|'sha256-[A-Za-z0-9+/=]+'))+|(base-uri|form-action) 'none'")
MOST_SHOWN = 120
MOST_CLASSES = 40


class RunPages:
    """The answers to requests about runs.

    Args:
        state: which runs there are.
    """

    def __init__(self, state: ServerState):
        self.state = state

    def routes(self) -> list[Route]:
        """Which address answers what."""
        return [
            Route("/evaluation/{run}", errors_as_page(self.evaluation)),
            Route("/written/{run}/{name}", errors_as_page(self.written)),
        ]

    async def evaluation(self, request: Request) -> Response:
        network = self.state.network(request.path_params["run"])
        if network.outcome == "several":
            asked = finding_cell(network, request.query_params)
            view = await run_in_threadpool(finding_evaluation, network, asked)
        else:
            view = await run_in_threadpool(evaluation_view, network, _cell(network, request))
        view["reliability"] = await run_in_threadpool(reliability_picture, network)
        view["folder"] = _folder(network)
        return HTMLResponse(
            render("evaluation.html", page="evaluation", networks=self.state.networks, **view)
        )

    async def written(self, request: Request) -> Response:
        network, name = self.state.network(request.path_params["run"]), request.path_params["name"]
        if name not in WRITTEN:
            raise GoneError
        found = written_page(network, name)
        if found is None:
            view = {"name": name, "network": network, "folder": _folder(network)}
            return HTMLResponse(
                render("unwritten.html", page=name, networks=self.state.networks, **view), 404
            )
        text = await run_in_threadpool(found.read_text, encoding="utf-8")
        return HTMLResponse(text, headers={"Content-Security-Policy": own_policy(text)})


def evaluation_view(network: Network, cell: tuple[int, int] | None) -> dict[str, Any]:
    """The confusion matrix of the test images, and the images of one of its cells.

    Args:
        network: the run.
        cell: true and predicted class.
    """
    names, test = network.class_names, network.test
    labels = [] if isinstance(test, tuple) else test.labels.tolist()
    pairs = [(t, p[0]) for t, p in zip(labels, network.predictions, strict=True) if p is not None]
    classes = list(range(len(names)))
    if len(classes) > MOST_CLASSES:  # those with something to see
        wrong = [t for t, p in pairs if t != p] + [p for t, p in pairs if t != p]
        classes = sorted(sorted(set(wrong), key=lambda c: -wrong.count(c))[:MOST_CLASSES])
    counts = {pair: pairs.count(pair) for pair in set(pairs)}
    totals = {c: sum(t == c for t, _ in pairs) for c in classes}
    rows = [
        {
            "name": names[t],
            "cells": [
                {
                    "asks": f"true={t}&predicted={p}",
                    "right": t == p,
                    "count": counts.get((t, p), 0),
                    "share": counts.get((t, p), 0) / max(totals[t], 1),
                    "says": f"{counts.get((t, p), 0)} of {totals[t]} {names[t]} seen as {names[p]}",
                }
                for p in classes
            ],
        }
        for t in classes
    ]
    right = sum(t == p for t, p in pairs)
    return {
        "network": network,
        "rows": rows,
        "columns": [names[c] for c in classes],
        "heading": "What is seen as what",
        "first": "true class",
        "note": _about_matrix(len(names) - len(classes)),
        "lead": _lead(network, len(pairs), right),
        "cell": None if cell is None else f"{names[cell[0]]}, seen as {names[cell[1]]}",
        "images": [] if cell is None else _images(network, labels, cell),
    }


def _about_matrix(left_out: int) -> str:
    """How to read it."""
    said = (
        "Rows are what is in the images, columns what the network sees. Darker is more of the row; a number "
        "opens its images."
    )
    return f"{said} {left_out} classes without mistakes, or with few, are left out." if left_out else said


def _lead(network: Network, known: int, right: int) -> str:
    if not len(network.test):
        return "The run's test images are not there."
    rest = network.about_rest("classified")
    if not known:
        return rest
    return f"{right:,} of {known:,} test images are right ({percent(right / known)}). {rest}".strip()


def _images(network: Network, labels: list[int], cell: tuple[int, int]) -> list[int]:
    true, predicted = cell
    pairs = enumerate(zip(labels, network.predictions, strict=True))
    return [i for i, (t, p) in pairs if t == true and p == (predicted,)][:MOST_SHOWN]


def _cell(network: Network, request: Request) -> tuple[int, int] | None:
    texts = [request.query_params.get(name, "") for name in ("true", "predicted")]
    if not all(text.isdecimal() and len(text) < 6 for text in texts):
        return None
    true, predicted = map(int, texts)
    return (true, predicted) if max(true, predicted) < len(network.class_names) else None


def written_page(network: Network, name: str) -> Path | None:
    """The page that a command of that name wrote into the run's folder, if there is one."""
    run = network.explainer.run
    if run is None:
        return None
    path = run.folder / WRITTEN[name]
    return path if is_file(path) and path.stat().st_size <= LARGEST else None


def reliability_picture(network: Network) -> str | None:
    """How often the network is right by how sure it is, as `protopfaith evaluate` drew it, if it did."""
    run = network.explainer.run
    path = None if run is None else run.folder / RELIABILITY
    if path is None or not is_file(path) or path.stat().st_size > LARGEST_PICTURE:
        return None
    return data_uri(path.read_bytes())


def own_policy(text: str) -> str:
    """What a page of ours allows itself; nothing at all where that says more than ours ever do."""
    found = POLICY.search(text[:20_000])
    parts = [] if found is None else [part.strip() for part in found[1].replace("&#39;", "'").split(";")]
    if parts and all(HARMLESS.fullmatch(part) for part in parts if part):
        return "; ".join([*(part for part in parts if part), "frame-ancestors 'none'"])
    return "default-src 'none'; frame-ancestors 'none'"


def _folder(network: Network) -> str:
    run = network.explainer.run
    return network.name if run is None else run.folder.name

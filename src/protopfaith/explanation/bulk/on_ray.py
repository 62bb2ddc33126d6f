"""The same on Ray: workers that load the network once, and one writer."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from protopfaith.cluster import SetAside, needs_of, on_ray
from protopfaith.devices import DeviceError
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.bulk.dataset import Manifest
from protopfaith.explanation.bulk.inputs import Item
from protopfaith.explanation.bulk.schema import failed_row
from protopfaith.explanation.explainer import Explainer
from protopfaith.training import Run

if TYPE_CHECKING:
    from protopfaith.explanation.bulk.explain import Request, Work

Contents = tuple[bytes | None, ...]
SHIPPED = ("recipe.yaml", "model.safetensors", "environment.json", "reference.json")


def answers_on_ray(
    explainer: Explainer, request: Request, work: Work, *, address: str, ship: bool, at_once: int = 1
) -> Iterator[dict[str, Any]]:
    """Rows as they are done, in any order; what each row holds does not depend on who computed it.

    Args:
        explainer: of a run
        request: what is asked
        work: what is left to do
        address: `"local"`, or that of a cluster
        ship: send run and images along
        at_once: images that a worker explains at the same time
    """
    run, items, manifest = explainer.run, work.items, work.bulk.manifest
    if run is None:
        raise ProtoPFaithError("Workers of Ray load a run by themselves; give a run, not a network alone.")
    files = {name: (run.folder / name).read_bytes() for name in SHIPPED if (run.folder / name).is_file()}
    found = on_ray(
        address,
        RayWorker,
        (files if ship else str(run.folder.absolute()), explainer.device.type, request, manifest),
        work.positions(),
        needs=needs_of(explainer.device.type, manifest.threads),
        given=lambda place: (place, items[place], _contents(items[place]) if ship else ()),
        at_once=at_once,
    )
    for position, row in found:
        yield failed_row(items[position].name, position, row.why) if isinstance(row, SetAside) else row


def _contents(item: Item) -> Contents:
    """Of the image, then of its masks."""

    def content(one: Item) -> bytes | None:
        try:
            return one.content()
        except OSError:  # said by the worker
            return None

    return tuple(content(one) for one in (item, *(Item(Path(mask).name, mask) for mask in item.masks)))


class RayWorker:
    """A network, loaded once.

    Args:
        run: its folder, or the content of its files
        device: where to compute
        request: what is asked
        manifest: of the data set
    """

    def __init__(self, run: str | dict[str, bytes], device: str, request: Request, manifest: Manifest):
        from protopfaith.explanation.bulk.explain import Answering

        self.folder = tempfile.TemporaryDirectory()
        place = Path(self.folder.name)
        if isinstance(run, dict):
            for name, content in run.items():
                (place / name).write_bytes(content)
        if device == "cpu":
            torch.set_num_threads(manifest.threads)
        explainer = Explainer(Run(place if isinstance(run, dict) else run), device=device)
        self.answering = Answering(explainer, request, manifest, place)
        self.alone, self.prepared = threading.Lock(), False
        self.thread = threading.local()

    def answer(self, position: int, item: Item, contents: Contents) -> dict[str, Any]:
        """The row of one image, which is sent along with its masks or read from the file system.

        May be asked by several threads; images go alone until one succeeds, as they do without Ray.
        """
        if not hasattr(self.thread, "settled"):
            self.answering.settle()
            self.thread.settled = True
        if self.prepared:
            return self._answer(position, item, contents)
        with self.alone:
            row = self._answer(position, item, contents)
            self.prepared |= row["error"] is None
            return row

    def _answer(self, position: int, item: Item, contents: Contents) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                return self.answering(position, _copied(item, contents, Path(folder)))
            except DeviceError:
                os._exit(1)  # Ray begins another process, in which the device may work again


def _copied(item: Item, contents: Contents, folder: Path) -> Item:
    """The same image and masks, as files in a folder where their content was sent along."""
    masks = list(item.masks)
    for number, content in enumerate(contents):
        if content is None:
            continue
        name = item.name if number == 0 else masks[number - 1]
        copy = folder / f"image{number}{Path(name).suffix}"
        copy.write_bytes(content)
        if number == 0:
            item = replace(item, path=str(copy), offset=0, size=None)
        else:
            masks[number - 1] = str(copy)
    return replace(item, masks=tuple(masks))

"""Explains very many images into a data set, one after another or on several machines."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch

from protopfaith.annotations import check_arguments
from protopfaith.anonymous import without_path
from protopfaith.arguments import instance, shown, whole_number
from protopfaith.crashes import logged, unexpected
from protopfaith.data.frames import split_frame
from protopfaith.devices import DeviceError, has_failed
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.bulk.arrow import pyarrow_module
from protopfaith.explanation.bulk.dataset import PART, Bulk, Manifest, begin
from protopfaith.explanation.bulk.identity import fingerprint
from protopfaith.explanation.bulk.inputs import Item, list_fingerprint, list_items
from protopfaith.explanation.bulk.locations import keep_locations
from protopfaith.explanation.bulk.schema import failed_row, row_of
from protopfaith.explanation.decision import choose_output
from protopfaith.explanation.decomposition import check_different, find_class
from protopfaith.explanation.explainer import Explainable, Explainer, as_explainer
from protopfaith.explanation.explanation import Explanation
from protopfaith.explanation.game import check_game
from protopfaith.explanation.picture import open_mask
from protopfaith.explanation.settings import Settings, players_name, stable_text
from protopfaith.files import is_file, reason
from protopfaith.progress import Bar
from protopfaith.shards import check_shard

MOST_AT_ONCE = 64
USUAL_AT_ONCE = {"cuda": 2}


@dataclass(frozen=True)
class Request:
    """What is asked about every image alike."""

    settings: Settings
    target: str | int | None = None
    versus: str | int | None = None

    def facts(self) -> dict[str, Any]:
        """For people and for comparison: plain values alone."""
        known = {one.name: getattr(self.settings, one.name) for one in fields(self.settings)}
        known |= {"players": players_name(self.settings.players), "estimator": self.settings.method}
        known |= {"class": self.target, "versus": self.versus}
        return {name: value if _is_plain(value) else stable_text(value) for name, value in known.items()}

    def check(self, explainer: Explainer) -> None:
        """Raises if something is wrong for every image alike."""
        model = explainer.model
        choose_output(model, self.settings, self.versus)
        check_different(model, find_class(model, self.target), find_class(model, self.versus))
        check_game(self.settings, explainer.blank())


def explain_bulk(
    model: Explainable | Explainer,
    inputs: Iterable[Path | str],
    folder: Path | str,
    *,
    target: str | int | None = None,
    versus: str | int | None = None,
    settings: Settings | None = None,
    shard: tuple[int, int] = (1, 1),
    ray: str | None = None,
    ship: bool = False,
    at_once: int | None = None,
    anonymous: bool = False,
    device: torch.device | str | None = None,
    progress: bool = False,
    **keywords: Any,
) -> Bulk:
    """Explains images without pages: one row each in a Parquet data set, see `schema.COLUMNS`.

    Calling again goes on; only images that were being computed are lost by an interruption. An image that
    fails is a row with its reason.

    Args:
        model: a run, its folder, a network, or an `Explainer`; on Ray a run.
        inputs: image files, folders, CSV, TSV or Parquet lists, tars, see `list_items`.
        folder: of the data set.
        target: the class to explain, by name or number; the predicted one of each image by default.
        versus: another class to compare it with.
        settings: how to compute; `keywords` are fields of it. Without a precision and a budget, an image
            stops at a precision of 0.2, or else at the usual budget; `reached` in its row says which.
            Source images and a second baseline are never explained.
        shard: (i, n) does the i-th of n shares, counted from 1; the others may be done elsewhere.
        ray: `"local"`, or the address of a Ray cluster, whose workers do the work.
        ship: send run and images to the workers, where these do not see the same files.
        at_once: images that are explained at the same time in one process, or in each worker of Ray, as one
            alone does not keep a GPU busy; two by default, on a CPU one. What comes out is the same.
        anonymous: numbers instead of file names; which is which stays behind in `FOLDER-where.parquet`.
        device: where to compute.
        progress: whether to show a bar.
        keywords: fields of `Settings`, in the place of those of `settings`.

    >>> from tempfile import mkdtemp
    >>> bulk = explain_bulk("runs/birds", ["bird.png"], mkdtemp(), players=16, budget=64)
    >>> bulk  # doctest: +ELLIPSIS
    Bulk('...', 1 images)
    """
    check_arguments(explain_bulk, locals())
    pyarrow_module()
    first, of = check_shard(shard)
    if at_once is not None:
        whole_number(at_once, "The number of images at a time", least=1, most=MOST_AT_ONCE)
    if isinstance(inputs, str | Path):
        raise ProtoPFaithError(f"Inputs are a list of paths, not one; write [{shown(str(inputs))}].")
    folder = Path(instance(folder, (str, Path), "Where to write", "a folder"))
    explainer = as_explainer(model, device=device)
    settings = replace(
        Settings.of(settings, **keywords), sources=False, source_parts=False, second_baseline=None
    )
    settings = settings.made_frugal(explainer.device)
    request = Request(settings.on(explainer.device, explainer.size), target, versus)
    request.check(explainer)
    items = list_items(list(inputs), anonymous=anonymous)
    bulk = begin(folder, make_manifest(explainer, request, items))
    keep_locations(bulk.folder, explainer, items, anonymous=anonymous)
    usual = USUAL_AT_ONCE.get(explainer.device.type, 1)
    todo = [number for number in range(bulk.manifest.parts) if number % of == first - 1]
    work = Work(bulk, items, todo)
    with Bar(progress) as bar:
        bar.begin("explaining", total=work.images, done=work.images - work.left)
        for row in _answers(explainer, request, work, ray=ray, ship=ship, at_once=at_once or usual):
            work.take(row)
            bar.advance()
        work.finish()
    return bulk


def _answers(
    explainer: Explainer, request: Request, work: Work, *, ray: str | None, ship: bool, at_once: int
) -> Iterator[dict[str, Any]]:
    if ray is None:
        answer = Answering(explainer, request, work.bulk.manifest, work.bulk.folder)
        tasks = [(position, work.items[position]) for position in work.positions()]
        yield from answer.several(tasks, at_once)
    else:
        from protopfaith.explanation.bulk.on_ray import answers_on_ray

        yield from answers_on_ray(explainer, request, work, address=ray, ship=ship, at_once=at_once)


class Work:
    """What is left to do, and the parts that become whole on the way.

    Args:
        bulk: the data set
        items: all images
        parts: numbers of the parts to do
    """

    def __init__(self, bulk: Bulk, items: Sequence[Item], parts: Sequence[int]):
        self.bulk, self.items = bulk, items
        self._missing = {number: set(bulk.missing(number)) for number in parts}
        self.images = sum(len(bulk.positions(number)) for number in parts)

    @property
    def left(self) -> int:
        return sum(map(len, self._missing.values()))

    def positions(self) -> list[int]:
        """Images without a row, in the order of the list."""
        return [position for missing in self._missing.values() for position in sorted(missing)]

    def take(self, row: dict[str, Any]) -> None:
        """Keeps a row, and makes its part whole if it is the last one."""
        self.bulk.keep(row)
        number = row["position"] // PART
        self._missing[number].discard(row["position"])
        if not self._missing[number]:
            self.bulk.finish(number)

    def finish(self) -> None:
        """Makes parts whole whose rows were all there already."""
        for number, missing in self._missing.items():
            if not missing and not self.bulk.part(number).exists():
                self.bulk.finish(number)


class Answering:
    """Explains one image after another with a network that is loaded once.

    Args:
        explainer: of the network
        request: what is asked
        manifest: of the data set
        log: folder for tracebacks of what nobody expected
    """

    def __init__(self, explainer: Explainer, request: Request, manifest: Manifest, log: Path):
        self.explainer, self.request, self.log = explainer, request, log
        self.threads = manifest.threads
        self.labels = manifest.window is None
        self.common = {"settings": json.dumps(manifest.settings, sort_keys=True), "weights": manifest.weights}
        if explainer.device.type == "cpu":
            torch.set_num_threads(manifest.threads)  # rounding depends on it

    def several(self, tasks: Sequence[tuple[int, Item]], at_once: int) -> Iterator[dict[str, Any]]:
        """The rows of many images in their order; each is what it would be alone.

        Images go alone until one succeeds: what is measured and prepared once must not be disturbed. Then
        each thread has an image of its own (on a GPU a stream, too), so that the device works on one while
        another is read or fitted.
        """
        left = iter(tasks)
        for task in left:
            row = self(*task)
            yield row
            if at_once > 1 and row["error"] is None:
                break
        with ThreadPoolExecutor(at_once, initializer=self.settle) as pool:
            waiting: deque[Future[dict[str, Any]]] = deque()
            try:
                for task in left:
                    waiting.append(pool.submit(self, *task))
                    if len(waiting) > at_once:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:  # interrupted: what has not begun never does
                pool.shutdown(wait=False, cancel_futures=True)

    def settle(self) -> None:
        """What PyTorch keeps for each thread apart."""
        if self.explainer.device.type == "cpu":
            torch.set_num_threads(self.threads)
        elif self.explainer.device.type == "cuda":
            torch.cuda.synchronize(self.explainer.device)  # weights must be there before others read them
            torch.cuda.set_stream(torch.cuda.Stream(self.explainer.device))

    def __call__(self, position: int, item: Item) -> dict[str, Any]:
        """The row of one image, whatever happens."""
        try:
            _mask(item, self.explainer.size)  # before the work
            with item.file() as file:
                row = self._row(position, item, file)
        except DeviceError:
            raise
        except ProtoPFaithError as error:  # of its mask: those of the image are told in its row
            row = failed_row(item.name, position, str(error))
        except OSError as error:
            row = failed_row(item.name, position, f"The file cannot be read ({reason(error)}); check it.")
        return {**row, **self.common}

    def _row(self, position: int, item: Item, file: Path) -> dict[str, Any]:
        try:
            found = self.explainer.explain(
                file,
                target=self.request.target,
                versus=self.request.versus,
                settings=self.request.settings,
                name=item.name,
            )
            mask = _mask(item, self.explainer.size, found.original.shape[-2:])
            return row_of(
                found,
                position,
                labels=self.labels,
                inside=_inside(found, item, mask),
                fingerprint=None if item.anonymous else fingerprint(file),
            )
        except ProtoPFaithError as error:
            return failed_row(item.name, position, without_path(str(error), file, item.name))
        except Exception as error:  # one bad image does not spoil the others
            if has_failed(self.explainer.device):  # which would say the same of all that follow
                raise DeviceError(
                    f"The device {self.explainer.device} failed ({logged(error, self.log)}); what was done "
                    "is kept: give the same command again."
                ) from error
            why = unexpected(error, self.log)
            return failed_row(item.name, position, without_path(why, file, item.name))


def _mask(item: Item, size: Sequence[int], original: Sequence[int] | None = None) -> torch.Tensor | None:
    """Where the masks of an image say that its objects are, as the network sees it; None without any."""
    found = None
    for number, mask in enumerate(item.masks, start=1):
        which = f" {number}" if len(item.masks) > 1 else ""
        name = f"{item.name} (mask{which})" if item.anonymous else item.mask_names[number - 1]
        if not is_file(split_frame(mask)[0]):
            raise ProtoPFaithError(
                f"There is no mask {name} where the list says, whose paths count from its own folder; "
                "correct the list."
            )
        try:
            there = open_mask(mask, size, original)
        except ProtoPFaithError as error:
            raise ProtoPFaithError(without_path(str(error), Path(mask), name)) from error
        found = there if found is None else found | there
    return found


def _inside(found: Explanation, item: Item, mask: torch.Tensor | None) -> tuple[float, float] | None:
    """Share of the positive evidence on the object, and the object's share of the image: by its mask, which
    is more exact, or else by its boxes; None without any."""
    if mask is None:
        mask = _boxed(found, item) if item.boxes else None
    if mask is None or not mask.any():  # boxes lie outside the image, or in less than a pixel
        return None
    return found.class_map.share_inside(mask), float(mask.float().mean())


def _boxed(found: Explanation, item: Item) -> torch.Tensor:
    """Where the boxes of an image say that its objects are, as the network sees it."""
    height, width = found.pixels.shape[-2:]
    across, down = width / found.original.shape[-1], height / found.original.shape[-2]
    mask = torch.zeros(height, width, dtype=torch.bool)
    for left, top, right, bottom in item.boxes:
        rows = slice(max(int(top * down), 0), max(int(bottom * down + 0.5), 0))
        columns = slice(max(int(left * across), 0), max(int(right * across + 0.5), 0))
        mask[rows, columns] = True
    return mask


def make_manifest(explainer: Explainer, request: Request, items: Sequence[Item]) -> Manifest:
    """What the data set is about."""
    settings, size = request.settings, explainer.size
    window = (settings.players, settings.players) if isinstance(settings.players, int) else None
    reference = explainer.reference
    temperature = "" if reference is None else str(reference.by_finding or reference.temperature)
    key = settings.key(explainer.weights_hash, json.dumps(request.facts(), sort_keys=True), temperature)
    return Manifest(
        images=len(items),
        items=list_fingerprint(items),
        key=key,
        classes=tuple(explainer.model.class_names),
        settings=request.facts(),
        weights=explainer.weights_hash,
        size=(int(size[0]), int(size[1])),
        window=window,
        threads=torch.get_num_threads(),
    )


def _is_plain(value: object) -> bool:
    plain: Callable[[object], bool] = lambda one: isinstance(one, str | int | float | bool | type(None))  # noqa: E731
    if isinstance(value, dict):
        return all(plain(one) for one in value.values())
    return plain(value)

"""The images that a data set was made of, as far as they can still be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from PIL import Image

from protopfaith.data import read_image
from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.bulk.dataset import Bulk
from protopfaith.explanation.bulk.identity import fingerprint
from protopfaith.explanation.bulk.inputs import Item
from protopfaith.explanation.bulk.locations import find_locations
from protopfaith.training import Run

Read = Callable[[Path], Image.Image]


def thumbnails(bulk: Bulk, names: Iterable[str], side: int) -> dict[str, Image.Image]:
    """Small pictures of some images by their names, in color; those that cannot be read anymore, or
    are other files than those that were explained, are left out.

    Args:
        bulk: the data set
        names: of images in it
        side: the longer one of a picture, in pixels
    """
    wanted = list(dict.fromkeys(names))
    try:
        run, root, items = find_locations(bulk.folder, wanted)
    except ProtoPFaithError:
        return {}
    read, known = _reading(run, root), _fingerprints(bulk)
    found = {name: _thumbnail(items[name], read, side, known.get(name)) for name in wanted if name in items}
    return {name: image for name, image in found.items() if image is not None}


def _reading(run: Path | None, root: Path | None) -> Read:
    """As the network reads its images, through the same window; plainly where the run is gone."""
    try:
        return read_image if run is None else Run(run, root).preprocessing().read
    except ProtoPFaithError:
        return read_image


def _fingerprints(bulk: Bulk) -> dict[str, str | None]:
    """Of the images by their names: what was written anew since then has other maps."""
    table = bulk.table(["image", "file_sha256"])
    return dict(zip(table["image"].to_pylist(), table["file_sha256"].to_pylist(), strict=True))


def _thumbnail(item: Item, read: Read, side: int, known: str | None) -> Image.Image | None:
    try:
        with item.file() as file:
            if known is not None and fingerprint(file) != known:
                return None
            image = read(file).convert("RGB")
    except (ProtoPFaithError, OSError):
        return None
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    return image

"""A local cache: every image decoded once, kept as uint8 at training size, and mapped into memory later.

The folder is `$PROTOPFAITH_CACHE`, else `protopfaith` in the user's cache folder. It holds
`hashes/<stamp>.json` (content hashes, valid while no file changes), `images/<name>-<size>-<key>/` (pixels
and index, keyed by content and by the version of the decoding) and `splits/` (who is in which split). All
of it may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from protopfaith.data.images import DECODING
from protopfaith.data.listing import Entry, Listing
from protopfaith.data.preprocessing import Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import atomic, sha256
from protopfaith.progress import Bar

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class CachedImages:
    """`pixels[i]` (uint8, C x H x W, mapped from disk) is `paths[i]`, whose file has `sizes[i]` pixels
    (height, width); `unreadable` says what is wrong with the files that are not among them."""

    folder: Path
    pixels: np.ndarray
    paths: list[str]
    sizes: list[tuple[int, int]]
    unreadable: dict[str, str]


def cache_folder() -> Path:
    """Where the cache is."""
    chosen = os.environ.get("PROTOPFAITH_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "protopfaith"


def remember(kind: str, key: str, compute: Callable[[], Any]) -> Any:
    """`compute()` as JSON, from the cache when it was computed before for the same key."""
    path = cache_folder() / kind / f"{key}.json"
    if path.is_file():
        return json.loads(path.read_text())
    result = compute()
    write_json(path, result)
    return result


def write_json(path: Path, content: Any) -> None:
    """Writes a JSON file, whole or not at all."""
    with atomic(path) as partial_path:
        partial_path.write_text(json.dumps(content, indent=1))


def content_hashes(listing: Listing) -> dict[str, str]:
    """The SHA-256 of every listed file, by path."""

    def compute() -> dict[str, str]:
        paths = [entry.path for entry in listing.entries]
        digests = in_threads(lambda path: _hash(listing.root / path), paths, f"Reading {listing.name}")
        return dict(zip(paths, digests, strict=True))

    return dict(remember("hashes", listing.stamp(), compute))


def _hash(path: Path) -> str:
    try:
        return sha256(path)
    except OSError as error:
        raise ProtoPFaithError(
            f"The file {path} cannot be opened ({error.strerror or error}); check its permissions, or remove "
            "it."
        ) from error


def cached_images(listing: Listing, hashes: dict[str, str], preprocessing: Preprocessing) -> CachedImages:
    """The listed images at training size; decoded now if they are not in the cache."""
    height, width = preprocessing.size
    key = _key(listing, hashes, preprocessing)
    folder = cache_folder() / "images" / f"{listing.name}-{height}x{width}-{key[:16]}"
    build_once(folder, partial(_decode_all, listing, preprocessing))
    index = json.loads((folder / "index.json").read_text())
    pixels = np.load(folder / "pixels.npy", mmap_mode="r")
    sizes = [(rows, columns) for rows, columns in index["sizes"]]
    return CachedImages(folder, pixels, index["paths"], sizes, index["unreadable"])


def build_once(folder: Path, build: Callable[[Path], None]) -> None:
    """Makes sure that `folder` is there: `build` fills it, whole or not at all."""
    if folder.is_dir():
        return
    try:
        with atomic(folder) as partial_folder:
            partial_folder.mkdir()
            build(partial_folder)
    except ProtoPFaithError:
        # Another process may have built the same in the meantime.
        if not folder.is_dir():
            raise


def in_threads(function: Callable[[T], R], items: Iterable[T], description: str) -> Iterator[R]:
    """`map` with a progress bar, on all cores: decoding and hashing release Python's lock."""
    items = list(items)
    with ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, 16)) as pool, Bar() as bar:
        yield from bar.track(pool.map(function, items), description, len(items))


def _key(listing: Listing, hashes: dict[str, str], preprocessing: Preprocessing) -> str:
    lines = sorted(f"{entry.path}\0{hashes[entry.path]}" for entry in listing.entries)
    told = [f"decoding {DECODING}", str(preprocessing.channels), *lines]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


def _decode_all(listing: Listing, preprocessing: Preprocessing, folder: Path) -> None:
    """Writes pixels.npy and index.json. Unreadable files are noted, not raised: they may be skipped."""
    shape = (len(listing.entries), preprocessing.channels, *preprocessing.size)
    pixels = np.lib.format.open_memmap(folder / "pixels.npy", mode="w+", dtype=np.uint8, shape=shape)
    _reserve(folder / "pixels.npy")
    paths: list[str] = []
    sizes: list[tuple[int, int]] = []
    unreadable: dict[str, str] = {}
    decode = partial(_decode, listing, preprocessing)
    for entry, result in zip(
        listing.entries, in_threads(decode, listing.entries, f"Preparing {listing.name}"), strict=True
    ):
        if isinstance(result, str):
            unreadable[entry.path] = result
            continue
        pixels[len(paths)], size = result
        paths.append(entry.path)
        sizes.append(size)
    pixels.flush()
    write_json(folder / "index.json", {"paths": paths, "sizes": sizes, "unreadable": unreadable})


def _reserve(path: Path) -> None:
    """Takes the whole space of a mapped file now, where a full disk is an OSError; later, writing into the
    map, it would end the process without a word."""
    if hasattr(os, "posix_fallocate"):
        with path.open("r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


def _decode(
    listing: Listing, preprocessing: Preprocessing, entry: Entry
) -> tuple[np.ndarray, tuple[int, int]] | str:
    try:
        image = listing.read(listing.root / entry.path)
    except ProtoPFaithError as error:
        return str(error)
    return preprocessing.uint8(image).numpy(), (image.height, image.width)

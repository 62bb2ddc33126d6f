"""A local cache: every image decoded once, kept as uint8 at training size, and mapped into memory later.

The folder is `$PROTOPFAITH_CACHE`, else `protopfaith` in the user's cache folder. It holds
`hashes/<stamp>.json` (content hashes, valid while no file changes), `images/<name>-<size>-<key>/` (pixels
and index, keyed by content and by the version of the decoding) and `splits/` (who is in which split). All
of it may be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import uuid
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
from protopfaith.files import is_folder, leads_nowhere, plain_file, reason, sha256
from protopfaith.progress import Bar
from protopfaith.writing import atomic, remove_leftovers

logger = logging.getLogger("protopfaith")
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


def remember(
    kind: str, key: str, compute: Callable[[], Any], valid: Callable[[Any], bool] = lambda known: True
) -> Any:
    """`compute()` as JSON, from the cache when it was computed before for the same key and is `valid`."""
    path = cache_folder() / kind / f"{key}.json"
    known = _recall(path, valid)
    if known is not None:
        return known
    result = compute()
    _keep(path, result)
    return result


def remember_each(
    kind: str,
    key: str,
    names: Iterable[str],
    compute: Callable[[str], Any],
    *,
    valid: Callable[[Any], bool],
    description: str,
) -> dict[str, Any]:
    """`compute(name)` of every name, each from the cache where it is known and `valid`.

    None is no answer and is not kept: what failed for want of a package, or of a disk, is asked again.
    """
    path = cache_folder() / kind / f"{key}.json"
    kept = _recall(path, lambda known: isinstance(known, dict)) or {}
    names = list(names)
    known = {name: kept[name] for name in names if name in kept and valid(kept[name])}
    missing = [name for name in names if name not in known]
    if not missing:
        return known
    for name, found in zip(missing, in_threads(compute, missing, description), strict=True):
        if found is not None:
            known[name] = found
    if known != kept:
        _keep(path, known)
    return known


def _recall(path: Path, valid: Callable[[Any], bool]) -> Any:
    """What was kept there; None where nothing is, or it is broken: it is computed again."""
    try:
        known = json.loads(plain_file(path).read_text(encoding="utf-8"))
        return known if valid(known) else None
    except (OSError, ValueError, RecursionError, TypeError, KeyError, AttributeError):
        return None


def _keep(path: Path, content: Any) -> None:
    try:
        write_json(path, content)
    except ProtoPFaithError as error:  # nowhere to keep it: computed again next time
        logger.info("The cache cannot be written: %s", error)


def write_json(path: Path, content: Any) -> None:
    """Writes a JSON file, whole or not at all."""
    private_folder(path.parent)
    with atomic(path) as partial_path:
        partial_path.write_text(json.dumps(content, indent=1), encoding="utf-8")


def private_folder(folder: Path) -> None:
    """Makes folders of the cache that only their owner can look into: radiographs are kept there."""
    top = cache_folder()
    for one in (top, *reversed([p for p in (folder, *folder.parents) if top in p.parents])):
        try:
            one.mkdir(mode=0o700, parents=True, exist_ok=True)
            if one.stat().st_mode & 0o077:
                one.chmod(0o700)
        except OSError:  # said by whoever writes there
            return


def content_hashes(listing: Listing) -> dict[str, str]:
    """The SHA-256 of every listed file, by path."""

    def compute() -> dict[str, str]:
        paths = [entry.path for entry in listing.entries]
        digests = in_threads(lambda path: _hash(listing.root / path), paths, f"Reading {listing.name}")
        return dict(zip(paths, digests, strict=True))

    wanted = {entry.path for entry in listing.entries}

    def valid(known: Any) -> bool:
        return known.keys() == wanted and all(
            isinstance(one, str) and len(one) == 64 for one in known.values()
        )

    return dict(remember("hashes", listing.stamp(), compute, valid))


def _hash(path: Path) -> str:
    try:
        return sha256(path)
    except OSError as error:
        if leads_nowhere(path):  # told, or skipped, where it is decoded
            return hashlib.sha256(f"nothing at {path!a}".encode()).hexdigest()
        raise ProtoPFaithError(
            f"The file {path} cannot be read ({error.strerror or error}); check its permissions, or remove "
            "it."
        ) from error


def cached_images(listing: Listing, hashes: dict[str, str], preprocessing: Preprocessing) -> CachedImages:
    """The listed images at training size; decoded now if they are not in the cache.

    Files that could not be read before are tried again: they may have been a package or a disk short.
    """
    height, width = preprocessing.size
    key = _key(listing, hashes, preprocessing)
    folder = cache_folder() / "images" / f"{listing.name}-{height}x{width}-{key[:16]}"
    shape = (preprocessing.channels, *preprocessing.size)
    build, read = partial(_decode_all, listing, preprocessing), partial(_read_cached, listing, shape)
    tried_now = not is_folder(folder)
    found = build_once(folder, build, read)
    again = None if tried_now else _readable_now(listing, preprocessing, found)
    if again is None:
        return found

    def read_better(folder: Path) -> CachedImages:
        better = read(folder)
        if again in better.unreadable:
            raise ValueError(f"{again} can be read now")
        return better

    try:
        return build_once(folder, build, read_better)
    except ValueError:  # it could not be read once more
        return build_once(folder, build, read)


def _readable_now(listing: Listing, preprocessing: Preprocessing, found: CachedImages) -> str | None:
    """A file that could not be read when the cache was made, and can be now."""
    entries = [entry for entry in listing.entries if entry.path in found.unreadable]
    if not entries:
        return None
    results = in_threads(
        partial(_decode, listing, preprocessing), entries, f"Trying {listing.name} once more"
    )
    better = [
        entry.path for entry, result in zip(entries, results, strict=True) if not isinstance(result, str)
    ]
    return better[0] if better else None


def _read_cached(listing: Listing, shape: tuple[int, ...], folder: Path) -> CachedImages:
    """What lies in the folder; raises anything if it is not what was written there."""
    index = json.loads(plain_file(folder / "index.json").read_text(encoding="utf-8"))
    pixels = np.load(plain_file(folder / "pixels.npy"), mmap_mode="r")
    sizes = [(int(rows), int(columns)) for rows, columns in index["sizes"]]
    paths, unreadable = list(index["paths"]), dict(index["unreadable"])
    listed = {entry.path for entry in listing.entries}
    if (
        len(paths) != len(sizes)
        or {*paths, *unreadable} != listed
        or len(paths) + len(unreadable) != len(listed)
    ):
        raise ValueError("other images")
    if pixels.dtype != np.uint8 or pixels.shape != (len(listed), *shape):
        raise ValueError("other pixels")
    check_unchanged(folder, index)
    return CachedImages(folder, pixels, paths, sizes, unreadable)


def check_unchanged(folder: Path, index: dict[str, Any]) -> None:
    """Raises if pixels.npy is not what was written; it is read as a whole only if the file was touched."""
    stamp = _stamp(folder / "pixels.npy")
    if index.get("stamp") == stamp:
        return
    if index.get("sha256") != sha256(folder / "pixels.npy"):
        raise ValueError("the pixels have changed")
    try:  # a copied cache: looked at once
        write_json(folder / "index.json", {**index, "stamp": stamp})
    except ProtoPFaithError:
        logger.info("The cache in %s is read-only.", folder)


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def build_once(folder: Path, build: Callable[[Path], None], read: Callable[[Path], R]) -> R:
    """What `read` finds in `folder`; where that is missing or broken, `build` fills it anew, whole or not at
    all."""
    try:
        return read(folder)
    except Exception as error:  # whatever a broken file leads to
        if is_folder(folder):
            logger.warning("The cache in %s cannot be used (%s) and is made anew.", folder, reason(error))
    private_folder(folder.parent)
    remove_leftovers(folder.parent)
    _check_writable(folder.parent)
    try:
        with atomic(folder) as partial_folder:
            partial_folder.mkdir(mode=0o700)
            build(partial_folder)
            if folder.exists() and not _is_whole(folder, read):
                _take_away(folder)
    except ProtoPFaithError as error:
        try:  # a folder that another process built in the meantime is whole and cannot be replaced
            return read(folder)
        except (OSError, ValueError, KeyError, TypeError):
            raise error from None
    return read(folder)


def _check_writable(folder: Path) -> None:
    """Raises before the work if nothing can be kept there, as with a home that is read-only."""
    if is_folder(folder) and os.access(folder, os.W_OK | os.X_OK):
        return
    raise ProtoPFaithError(
        f"The cache of decoded images cannot be written to {folder}; name a folder that can be, in the "
        "variable PROTOPFAITH_CACHE of the environment."
    )


def _is_whole(folder: Path, read: Callable[[Path], Any]) -> bool:
    try:
        read(folder)
    except Exception:  # whatever a broken file leads to
        return False
    return True


def _take_away(folder: Path) -> None:
    """Removes a broken folder at once, whoever else looks at it."""
    aside = folder.with_name(f".{folder.name}.{uuid.uuid4().hex[:8]}.partial")
    folder.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)


def in_threads(function: Callable[[T], R], items: Iterable[T], description: str) -> Iterator[R]:
    """`map` with a progress bar, on all cores: decoding and hashing release Python's lock."""
    items = list(items)
    with ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, 16)) as pool, Bar() as bar:
        yield from bar.track(pool.map(function, items), description, len(items))


def _key(listing: Listing, hashes: dict[str, str], preprocessing: Preprocessing) -> str:
    lines = sorted(f"{entry.path!a}\0{hashes[entry.path]}" for entry in listing.entries)
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
    pixels_path = folder / "pixels.npy"
    told = {"sha256": sha256(pixels_path), "stamp": _stamp(pixels_path)}
    write_json(folder / "index.json", {"paths": paths, "sizes": sizes, "unreadable": unreadable, **told})


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
    except Exception as error:  # of a reader that somebody registered: one image does not spoil the others
        return f"The image {entry.path} cannot be read ({reason(error)}); replace or remove it."
    return preprocessing.uint8(image).numpy(), (image.height, image.width)

"""From a listing of files to training, validation and test sets: the same way for every data set on disk."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from protopfaith.annotations import check_arguments
from protopfaith.arguments import some_of
from protopfaith.data.cache import CachedImages, cache_folder, cached_images, content_hashes, write_json
from protopfaith.data.imagedata import ImageData, split_pool
from protopfaith.data.imageset import ImageSet, Record
from protopfaith.data.listing import Box, Entry, Listing, check_inside
from protopfaith.data.preprocessing import Preprocessing
from protopfaith.data.splits import with_fold
from protopfaith.errors import ProtoPFaithError

logger = logging.getLogger("protopfaith")


@dataclass(frozen=True)
class Known:
    """One readable image: where it is, what it shows, what it contains."""

    entry: Entry
    sha256: str


# Decides the split ("train", "validation", "test", or "" to leave it out) of every image.
Splitter = Callable[[Sequence[Known]], Sequence[str]]


def load_listing(
    listing: Listing, split: Splitter, preprocessing: Preprocessing, *, skip_unreadable: bool, split_name: str
) -> ImageData:
    """Decodes (or finds in the cache) the listed images, splits them and checks the splits.

    Args:
        listing: which files there are
        split: decides the split of every readable image
        preprocessing: at which size they are kept
        skip_unreadable: go on without files that cannot be read, which is an error otherwise
        split_name: under which the split is written into the cache, for people

    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from PIL import Image
    >>> root = Path(mkdtemp())
    >>> for number in range(20):
    ...     Image.new("RGB", (16, 16), (10 * number, 0, 0)).save(root / f"{number}.png")
    >>> entries = [Entry(f"{n}.png", ("cat", "dog")[n % 2], "test" if n > 13 else "train") for n in range(20)]
    >>> data = load_listing(
    ...     Listing("pets", root, tuple(entries), ("cat", "dog")),
    ...     lambda known: official_split(known, fold=None, seed=0),
    ...     Preprocessing((8, 8)),
    ...     skip_unreadable=False,
    ...     split_name="seed0",
    ... )
    >>> {name: len(images) for name, images in data.sets().items()}
    {'train': 11, 'validation': 3, 'test': 6}
    """
    check_arguments(load_listing, locals())
    if not listing.entries:
        raise ProtoPFaithError(f"The data set {listing.name!r} lists no images; add some.")
    for entry in listing.entries:
        check_inside(entry.path, f"The data set {listing.name!r}")
    hashes = content_hashes(listing)
    cached = cached_images(listing, hashes, preprocessing)
    refuse_unreadable(cached, skip_unreadable)
    known = _known(listing, cached, hashes)
    contradictions = _contradictions(known)
    if contradictions and not listing.official:
        raise ProtoPFaithError(contradictions[0])
    split_of = split(known)
    data = split_pool(
        _pool(listing, cached, known, preprocessing),
        split_of,
        preprocessing,
        notes=(*listing.notes, *contradictions[:5], *_about_unreadable(cached), *_about_left_out(split_of)),
        unreadable=tuple(cached.unreadable),
    )
    if listing.outcome == "several":
        check_findings(data.sets())
    else:
        check_classes(data.sets())
    _tell(data, f"{listing.name}-{data.fingerprint[:16]}-{split_name}")
    return data


def _known(listing: Listing, cached: CachedImages, hashes: dict[str, str]) -> list[Known]:
    entries = {entry.path: entry for entry in listing.entries}
    return [Known(entries[path], hashes[path]) for path in cached.paths]


def _pool(
    listing: Listing, cached: CachedImages, known: Sequence[Known], preprocessing: Preprocessing
) -> ImageSet:
    """All readable images as one set."""
    labels = {name: label for label, name in enumerate(listing.classes)}
    records = [
        _record(item, size, labels, preprocessing) for item, size in zip(known, cached.sizes, strict=True)
    ]
    return ImageSet(cached.pixels, records, listing.classes, root=listing.root, outcome=listing.outcome)


def _contradictions(known: Sequence[Known]) -> list[str]:
    """A sentence about every picture that is in two classes."""
    first: dict[str, Entry] = {}
    found = []
    for item in known:
        other = first.setdefault(item.sha256, item.entry)
        if other.findings != item.entry.findings:
            found.append(
                f"The same picture has two lines with other findings: {other.path} and {item.entry.path}; "
                "remove one of them."
            )
        if other.label != item.entry.label:
            found.append(
                f"The same picture is in two classes: {other.path} ({other.label}) and {item.entry.path} "
                f"({item.entry.label}); remove one of them."
            )
    return found


def _tell(data: ImageData, name: str) -> None:
    """Notes for people: the log, and who is in which split."""
    for note in data.notes:
        logger.warning(note)
    write_json(cache_folder() / "splits" / f"{name}.json", data.splits())


def check_classes(sets: dict[str, ImageSet]) -> None:
    """Raises if a class is not trained on."""
    train = Counter(sets["train"].labels.tolist())
    classes = sets["train"].classes
    for name in ("validation", "test"):
        for label in sorted(set(sets[name].labels.tolist())):
            if not train[label]:
                raise ProtoPFaithError(
                    f"The class {classes[label]!r} is in {name} but not in training; add training images "
                    f"of it or remove it from {name}."
                )
    for label, name in enumerate(classes):
        if train[label] < 1:
            raise ProtoPFaithError(f"The class {name!r} has no training image; add some or remove the class.")


def check_findings(sets: Mapping[str, ImageSet]) -> None:
    """Raises if a finding is never there, or never missing, among the training images."""
    train = sets["train"]
    for place, name in enumerate(train.classes):
        values = train.labels[:, place]
        for value, word in ((1, "there"), (0, "absent")):
            if not bool((values == value).any()):
                raise ProtoPFaithError(
                    f"The finding {name!r} is never {word} in a training image; add images where it is, or "
                    "leave the finding out."
                )


def leave_out_test_copies(known: Sequence[Known], split_of: Sequence[str]) -> list[str]:
    """Official splits may share a picture: its copies leave training, the test set stays."""
    test = {item.sha256 for item, split in zip(known, split_of, strict=True) if split == "test"}
    return [
        "" if split != "test" and item.sha256 in test else split
        for item, split in zip(known, split_of, strict=True)
    ]


def official_split(known: Sequence[Known], fold: int | str | None, seed: int) -> list[str]:
    """The official test set is held out; the official training set is dealt into five folds, stratified by
    class, of which one validates.

    Args:
        known: all readable images
        fold: the one that validates: 0 to 4, "none", or None for the first
        seed: of the deal

    >>> known = [Known(Entry(f"{n}.png", "cat", "test" if n > 4 else "train"), str(n)) for n in range(7)]
    >>> sorted(official_split(known, fold=0, seed=0))
    ['test', 'test', 'train', 'train', 'train', 'train', 'validation']
    """
    check_arguments(official_split, locals())
    official = leave_out_test_copies(known, [item.entry.split or "train" for item in known])
    kept = [i for i, split in enumerate(official) if split]
    chosen = with_fold(
        [official[i] for i in kept],
        [known[i].entry.path for i in kept],
        [known[i].entry.label for i in kept],
        [known[i].sha256 for i in kept],
        fold=fold,
        seed=seed,
    )
    result = [""] * len(known)
    for index, split in zip(kept, chosen, strict=True):
        result[index] = split
    return result


def refuse_unreadable(cached: CachedImages, skip: bool) -> None:
    """Raises if a file could not be read and may not be skipped."""
    if skip or not cached.unreadable:
        return
    others = len(cached.unreadable) - 1
    more = f" ({others} more images cannot be read either.)" if others else ""
    raise ProtoPFaithError(next(iter(cached.unreadable.values())) + more)


def _about_unreadable(cached: CachedImages) -> list[str]:
    count = len(cached.unreadable)
    return [f"{count} unreadable images are skipped: {some_of(cached.unreadable, 5)}."] if count else []


def _about_left_out(split_of: Sequence[str]) -> list[str]:
    count = sum(not name for name in split_of)
    return [f"{count} training images are also test images and are left out of training."] if count else []


def _record(
    item: Known, size: tuple[int, int], labels: dict[str, int], preprocessing: Preprocessing
) -> Record:
    """Boxes and points move with the resize."""
    height, width = preprocessing.size
    down, across = height / size[0], width / size[1]

    def resize(box: Box) -> Box:
        left, top, right, bottom = box
        return left * across, top * down, right * across, bottom * down

    entry = item.entry
    return Record(
        entry.path,
        -1 if entry.findings else labels[entry.label],
        item.sha256,
        tuple(resize(box) for box in entry.boxes),
        {name: (x * across, y * down) for name, (x, y) in entry.points.items()},
        entry.group,
        entry.about,
        entry.findings,
    )

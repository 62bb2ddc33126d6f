"""The one place where data sets are added: a function that loads one, registered by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from protopfaith.annotations import check_arguments
from protopfaith.arguments import instance, named, path, seed_number
from protopfaith.data.imagedata import ImageData
from protopfaith.data.preprocessing import checked_size
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_folder
from protopfaith.registry import Registry, borrowed, did_you_mean

Size = int | tuple[int, int] | None
Fold = int | str | None

# A loader takes the keyword arguments root, size, seed, fold and skip_unreadable of `load_data`, and any
# options of its own with their defaults. The first line of its docstring describes the data set to people.
Loader = Callable[..., ImageData]
DATASETS: Registry[Loader] = Registry("data set")

COMMON = ("root", "size", "seed", "fold", "skip_unreadable")


def load_data(
    name: str,
    *,
    root: Path | str | None = None,
    size: Size = None,
    seed: int = 0,
    fold: Fold = None,
    skip_unreadable: bool = False,
    **options: Any,
) -> ImageData:
    """Loads a data set by name, such as `birds` (embedded), `folder` or `cub`; `DATASETS` has all.

    Args:
        name: one of `DATASETS`
        root: where the data lies
        size: the training size, a number or (height, width); None for the data set's own
        seed: fixes the splits
        fold: 0 to 4 is the fold to validate on, "none" trains on everything, None is the
            data set's own validation set, or fold 0 where it has none; "auto" (of `folder`) is the same,
            but fold 0 where the validation set is too small to choose by
        skip_unreadable: go on without images that cannot be read
        options: of that data set alone, see `options_of`

    >>> load_data("birds", size=16, train=8, validation=8, test=8).train
    ImageSet(8 images of 8 classes, 3x16x16)
    """
    check_arguments(load_data, locals())
    from protopfaith.data.known import DATASETS  # all of them, which import this file

    loader = DATASETS[instance(name, str, "A data set", "a name")]
    known = options_of(name)
    seed = seed_number(seed)
    for option in options:
        if option not in known:
            raise ProtoPFaithError(
                f"The data set {name!r} has no option {option!r}; {did_you_mean(option, known)}"
            )
    place = None if root is None else Path(instance(root, (str, Path), "A root", "a folder")).expanduser()
    with borrowed(f"The data set {name!r}", loader):
        found = loader(
            root=place, size=size, seed=seed, fold=fold, skip_unreadable=skip_unreadable, **options
        )
    return instance(found, ImageData, f"What the data set {name!r} gives", "an ImageData")


def without_folder(loader: Loader) -> Loader:
    """Marks the loader of images that are made, not read, so that nobody says where they lie."""
    loader.without_folder = True  # type: ignore[attr-defined]
    return loader


def is_drawn(name: str) -> bool:
    """Whether a data set is known to lie in no folder."""
    from protopfaith.data.known import DATASETS

    return hasattr(DATASETS.get(name), "without_folder")


def check_place(name: str, root: Path | str) -> None:
    """Raises if images cannot lie where they are said to: nothing is there, or they are not read at all.

    Args:
        name: of the data set; one that is not known is left to whoever loads it
        root: what the user gave
    """
    if is_drawn(name):
        raise ProtoPFaithError(
            f"The images of the data set {name!r} are drawn, not read: leave out the folder ({named(root)})."
        )
    place = path(root, "The folder of the images").expanduser()
    if not is_folder(place):
        raise ProtoPFaithError(f"There is no folder {named(place)}; give the folder that holds the images.")


def options_of(name: str) -> dict[str, Any]:
    """The options that one data set has beyond the common ones, with their defaults.

    Args:
        name: one of `DATASETS`

    >>> from protopfaith.data import options_of
    >>> options_of("folder")
    {'channels': 3, 'bits': None, 'window': None, 'groups': None}
    """
    check_arguments(options_of, locals())
    from protopfaith.data.known import DATASETS

    parameters = inspect.signature(DATASETS[name]).parameters
    return {key: value.default for key, value in parameters.items() if key not in COMMON}


def default_fold(name: str) -> Fold:
    """The fold that a data set takes where nobody chooses one: the default of its loader's `fold`, so "auto"
    of `folder`, which then judges its own validation set, and None of loaders without one.

    Args:
        name: one of `DATASETS`

    >>> default_fold("folder"), default_fold("cub")
    ('auto', None)
    """
    from protopfaith.data.known import DATASETS

    given = inspect.signature(DATASETS[name]).parameters["fold"].default
    return None if given is inspect.Parameter.empty else given


def as_size(size: Size, default: int) -> tuple[int, int]:
    """(height, width) from what the caller gave.

    Args:
        size: a number, (height, width), or None
        default: in the place of None

    >>> as_size(None, 224), as_size((96, 128), 224)
    ((224, 224), (96, 128))
    """
    height, width = checked_size(default if size is None else size)
    if height < 8 or width < 8:
        raise ProtoPFaithError(f"Images of {height}x{width} pixels are too small; ask for 8x8 or more.")
    return height, width

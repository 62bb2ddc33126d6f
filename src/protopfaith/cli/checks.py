"""Cheap checks of paths and names, before anything heavy is imported: a typo is answered at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from protopfaith.arguments import named, shown
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import begins, is_file, is_folder, read_json, reason, refuse_run
from protopfaith.limits import DEFAULTS, limit
from protopfaith.registry import did_you_mean
from protopfaith.specs import (
    CPU_WINDOWS,
    DEFAULT_METHOD,
    LEAST_BUDGET,
    WINDOW,
    class_number,
    parse_players,
)
from protopfaith.tensorfile import TensorFileError, read_header
from protopfaith.writing import check_can_be_made, hold_pipe

RECIPES = Path(__file__).parent.parent / "training" / "recipes"


def check_run(folder: Path, root: Path | None = None) -> None:
    """Raises if `folder` is no run, or its images are said to be where nothing is."""
    if not is_file(folder / "recipe.yaml"):
        raise ProtoPFaithError(
            f"{folder} is no run folder (it holds no recipe.yaml); give the folder of a training."
        )
    _check_side(folder)
    check_root(root)


def check_classes(folder: Path, *names: str | None) -> None:
    """Raises if a run's network has no class of a name, as far as the run says what it has."""
    try:
        known = read_json(folder / "environment.json", "")["classes"]
    except (ProtoPFaithError, KeyError, TypeError):
        return
    for name in names:
        if name is not None and isinstance(known, list):
            class_number(name, known)


def check_budget(folder: Path, estimator: str, players: str | None, budget: int | None) -> None:
    """Raises if a budget is too small for the default estimator, as far as the run says how many windows its
    images have; anything else is told when the players are known."""
    if budget is None or budget >= LEAST_BUDGET or estimator not in ("default", DEFAULT_METHOD):
        return
    given = None if players is None else parse_players(players)
    if isinstance(given, str):
        return
    size = _size_of_images(folder)
    if size is None:
        return
    height, width = size
    side = given or max(WINDOW, math.ceil(max(height, width) / CPU_WINDOWS))
    n = math.ceil(height / side) * math.ceil(width / side)
    least = min(2 ** min(n, 20), LEAST_BUDGET)  # where all coalitions are fewer, they are what it takes
    if budget < least:
        raise ProtoPFaithError(
            f"A budget of {budget} evaluations is too small for {DEFAULT_METHOD!r}; "
            f"give a budget of at least {least}."
        )


def _size_of_images(folder: Path) -> tuple[int, int] | None:
    """Height and width that a run's network sees, as far as its file says it."""
    try:
        header = read_header(folder / "model.safetensors", "protopfaith")
        height, width = (int(side) for side in header["metadata"]["preprocessing"]["size"])
    except (TensorFileError, OSError, KeyError, TypeError, ValueError):
        return None
    return height, width


def _check_side(folder: Path) -> None:
    """Raises if a run's images are larger than the limit that the user has set; its file is not to blame."""
    side, most = max(_size_of_images(folder) or (0,)), limit("PROTOPFAITH_MAX_SIDE")
    if most < side <= DEFAULTS["PROTOPFAITH_MAX_SIDE"]:
        raise ProtoPFaithError(
            f"The images of {folder} have a side of {side:,} pixels, more than {most:,}; raise the limit, "
            "which is the environment variable PROTOPFAITH_MAX_SIDE."
        )


def check_root(root: Path | None) -> None:
    """Raises if the folder of the images is not there."""
    if root is not None and not is_folder(root):
        raise ProtoPFaithError(f"There is no folder {root}; give the folder that holds the images.")


def check_overrides(changes: Iterable[str]) -> None:
    """Raises if values that replace a recipe's name a folder of images that is not there."""
    for change in changes:
        key, _, value = change.partition("=")
        if key == "data.root" and value.startswith(("/", ".")):  # else it may be null, or quoted
            check_root(Path(value))


def check_file(path: Path | None, what: str) -> None:
    """Raises if a file is given that is not there; `what` says what it would be."""
    if path is not None and not is_file(path):
        raise ProtoPFaithError(f"There is no {what} at {named(path)[:300]}; check the path.")


def check_images(paths: Iterable[Path]) -> None:
    """Raises if there is none of the images at all; where there are some, these are done first. The folder
    of a run is none of images."""
    paths = list(paths)
    for path in paths:
        refuse_run(path)
    missing = [path for path in paths if not _is_image(path) and not is_folder(path)]
    if missing and len(missing) == len(paths):
        names = ", ".join(named(path)[-300:] or "''" for path in missing[:3])
        raise ProtoPFaithError(f"There is no image at {names}; check the path.")


def check_image(path: Path | None) -> None:
    """Raises if a single image is given that is not there, or is a folder."""
    if path is None:
        return
    check_images([path])
    if is_folder(path):
        from protopfaith.data.images import no_image

        raise no_image(path, alone=True)


def check_one_image(mask: Path | None, images: Sequence[Path]) -> None:
    """Raises if one mask is given for several images, in which the object lies elsewhere."""
    if mask is not None and len(images) > 1:
        raise ProtoPFaithError(
            f"--mask marks the object in one image, and {len(images):,} are given; explain each with its "
            "own, or all with --bulk and a list that has a column mask."
        )


def problems_of_all(paths: Iterable[Path], *, dicom: bool = False) -> list[str]:
    """What is wrong with each of the files, where none is an image; nothing where one of them is.

    Args:
        paths: of images
        dicom: they must belong to a study
    """
    from protopfaith.data.dicom_header import find_study
    from protopfaith.data.frames import split_frame
    from protopfaith.data.images import looks_like_image, read_image

    problems = []
    for path in paths:
        file, _ = split_frame(path)
        try:
            with file.open("rb") as opened:
                beginning = opened.read(132)
        except (OSError, ValueError):  # told when it is its turn
            return []
        try:
            if not looks_like_image(beginning):
                read_image(path)
            if dicom:
                find_study(file)
        except ProtoPFaithError as error:
            problems.append(str(error))
        else:
            return []
    return problems


def _is_image(path: Path) -> bool:
    """Whether there is such a file; `scan.dcm#3` is a frame of one."""
    name, mark, number = path.name.rpartition("#")
    return is_file(path) or bool(mark and name and number.isdecimal() and is_file(path.with_name(name)))


def check_frame_option(frame: str | None) -> None:
    """Raises if a frame is neither a number from 1 nor all."""
    if frame is None or frame == "all":
        return
    if not (frame.isascii() and frame.isdecimal() and len(frame) <= 9 and int(frame) > 0):
        raise ProtoPFaithError(f"A frame is a number from 1, or 'all', not {shown(frame)}.")


def check_recipe(recipe: str) -> None:
    """Raises if there is no such recipe, neither by name nor as a file."""
    path = Path(recipe)
    if is_file(path):
        return
    if path.suffix in (".yaml", ".yml"):
        raise ProtoPFaithError(f"There is no recipe file {path}; check the path.")
    known = [one.stem for one in RECIPES.glob("*.yaml")]
    if recipe not in known:
        raise ProtoPFaithError(f"There is no recipe named {shown(recipe)}; {did_you_mean(recipe, known)}")


def check_output_folder(folder: Path | None, *inputs: Path, option: str = "--out") -> None:
    """Raises if results cannot go there: no name, a file, or something that is read."""
    if folder is None:
        return
    if not str(folder) or str(folder) == ".":
        raise ProtoPFaithError(f"The folder for results has no name; give one with {option}.")
    if not is_folder(folder) and _exists(folder):
        raise ProtoPFaithError(
            f"{named(folder)} is a file and not a folder for results; give another as {option}."
        )
    if any(_same(folder, one) for one in inputs):
        raise ProtoPFaithError(f"{named(folder)} is what is read; give another folder as {option}.")
    check_can_be_made(folder)


def check_output_file(path: Path | None, suffix: str, *inputs: Path, beginning: bytes = b"") -> None:
    """Raises if a result would have a name of another kind of file, overwrite what is read, a folder, or a
    file of another kind (of another suffix, or not empty and without that beginning), or if its folder takes
    nothing new. A pipe must have a reader."""
    if path is None:
        return
    if not str(path) or str(path) == "." or is_folder(path):
        raise ProtoPFaithError(f"{str(path)!r} is no file to write to; give one such as result{suffix}.")
    try:
        target = path.resolve() if path.is_symlink() else path
    except (OSError, RuntimeError) as error:  # a name too long, a link to itself
        raise ProtoPFaithError(
            f"{named(path)[:120]} cannot be written ({reason(error)}); give another name."
        ) from error
    other = _exists(path) and (target.suffix.lower() != suffix or not begins(target, beginning))
    if other or any(_same(path, one) for one in inputs):
        raise ProtoPFaithError(
            f"{named(path)} is there already and no {suffix} file of ours, so it is not overwritten; give "
            "another name."
        )
    hold_pipe(path)
    if not _exists(path) and target.suffix.lower() != suffix:
        raise ProtoPFaithError(
            f"{named(path)} is no name of a {suffix} file; give one that ends in {suffix}, such as "
            f"result{suffix}."
        )
    if is_file(target) or not _exists(target):  # a pipe is written to where it is
        check_can_be_made(target.parent)


def _same(path: Path, other: Path) -> bool:
    try:
        return path.resolve() == other.resolve()
    except (OSError, RuntimeError):
        return False


def _exists(path: Path) -> bool:
    try:
        return path.exists() or path.is_symlink()
    except (OSError, ValueError):
        return False

"""Files of several pictures: frames of a DICOM file, pages of a TIFF file. One is named as `scan.dcm#3`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from protopfaith.arguments import named, shown, whole_number
from protopfaith.data.images import is_dicom, opened
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_file
from protopfaith.limits import check_pixels

ALL = "all"
MOST = 10_000


def split_frame(path: Path | str) -> tuple[Path, int | None]:
    """The file, and the number of the frame (from 1) that a path such as `scan.dcm#3` names.

    A file whose own name ends like that is taken as it is.

    >>> split_frame("no-such-folder/scan.dcm")[1] is None
    True
    """
    path = Path(path)
    found = re.fullmatch(r"(.+)#(\d{1,9})", path.name, flags=re.DOTALL)
    if found is None or is_file(path):
        return path, None
    file = path.with_name(found[1])
    return (file, int(found[2])) if is_file(file) else (path, None)


def with_frames(paths: Iterable[Path], frame: int | str | None) -> list[Path]:
    """The same files, with the frame that is wanted of each: a number from 1, or `"all"`; a file of a single
    picture stays as it is. What cannot be read is told where its pixels are.

    Args:
        paths: files
        frame: which one; None: as the paths say
    """
    if frame is None:
        return list(paths)
    number = parse_frame(frame)
    result = []
    for path in paths:
        if split_frame(path)[1] is not None:
            raise ProtoPFaithError(
                f"{named(path)} names a frame already; leave out either that or the frame of all files."
            )
        try:
            count = count_frames(path)
        except ProtoPFaithError:
            count = 1
        if count == 1 and number in (1, None):
            result.append(path)
        else:
            numbers = range(1, count + 1) if number is None else [number]
            result += [path.with_name(f"{path.name}#{one}") for one in numbers]
    return result


def parse_frame(frame: int | str) -> int | None:
    """A number from 1; None for all of them.

    >>> parse_frame("3"), parse_frame("all")
    (3, None)
    """
    if frame == ALL:
        return None
    text = str(frame).strip()
    if not re.fullmatch(r"\d{1,9}", text, flags=re.ASCII) or int(text) < 1:
        raise ProtoPFaithError(f"A frame is a number from 1, or {ALL!r}, not {shown(frame)}.")
    return whole_number(int(text), "A frame", least=1)


def count_frames(path: Path | str) -> int:
    """How many pictures a file holds.

    Args:
        path: an image or DICOM file
    """
    path = Path(path)
    if is_dicom(path):
        from protopfaith.data.dicom import count_dicom_frames

        count = count_dicom_frames(path)
    else:
        try:
            with opened(path) as image:
                check_pixels(*image.size, f"The image {named(path)}")
                count = int(getattr(image, "n_frames", 1))
        except ProtoPFaithError:
            raise
        except Exception as error:  # whatever broken bytes lead Pillow into
            raise ProtoPFaithError(
                f"The image {named(path)} cannot be read; replace or remove it."
            ) from error
    if count > MOST:
        raise ProtoPFaithError(
            f"{named(path)} holds {count:,} pictures, more than {MOST:,}; give one of them as NAME#1."
        )
    return max(count, 1)


def check_frame(path: Path, frame: int | None, count: int) -> int:
    """The frame's place in the file, from 0; raises if the file has none of that number."""
    if frame is not None and not 1 <= frame <= count:
        raise ProtoPFaithError(
            f"{named(path)} has no frame {frame}; give one from 1 to {count}."
            if count > 1
            else f"{named(path)} holds a single picture and no frame {frame}; give it without a frame."
        )
    return (frame or 1) - 1

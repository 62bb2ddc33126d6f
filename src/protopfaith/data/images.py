"""Reading one image file, whatever it holds, as plain 8-bit RGB or grayscale."""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from protopfaith.arguments import instance, named
from protopfaith.data.damage import check_undamaged
from protopfaith.data.eight_bits import finite_range, spread
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import decoding_reason, is_file, is_folder
from protopfaith.limits import check_pixels, limit

logger = logging.getLogger("protopfaith")

T = TypeVar("T")

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif", ".ppm", ".pgm"})

DICOM_MARK = b"DICM"  # after 128 bytes
LISTS = (".csv", ".tsv", ".parquet")  # of images, which explain --bulk reads
LOOKED_AT = 10_000  # names in a folder, for the sentence about it

# By content, whatever the name says. Pillow knows dozens more; some start other programs (EPS), most are not
# read by anybody who trains networks.
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "DIB", "TIFF", "GIF", "PPM")

# Part of the key of cached images. Raise it when a file is read as other pixels than before, here, in
# dicom.py or in Preprocessing.uint8: images decoded the old way are then not used anymore.
# 2: floating-point and 32-bit images are scaled from their own range (they were black).
# 3: DICOM files with a palette are read in its colors (they were the numbers of its entries), those of less
#    than 8 bits from their range (they were black).
# 4: plain gray TIFF files that are turned have their pixels in order (they were mixed up), and values that
#    are scaled by bits or a window are turned as the camera was held.
# 5: DICOM files that their own header makes all black or all white are refused (they were read as that).
# 6: the one color that a PNG file without an alpha channel calls transparent is white (it was that color).
DECODING = 6

_saying = threading.Lock()
_said: set[str] = set()


def say_once(message: str) -> None:
    """Logs a message the first time it is needed in this process, also when several threads need it."""
    with _saying:
        if message not in _said:
            _said.add(message)
            logger.warning(message)


def is_dicom(path: Path) -> bool:
    """Whether a file is to be read as DICOM: its name ends in `.dcm`, or it is no picture's name and the mark
    of DICOM files is inside. Scanners name files by numbers with dots, or not at all.

    >>> is_dicom(Path("scan.DCM")), is_dicom(Path("photo.png"))
    (True, False)
    """
    suffix = path.suffix.lower()
    if suffix == ".dcm" or suffix in SUFFIXES or not is_file(path):
        return suffix == ".dcm"
    return _has_dicom_mark(path)


def _has_dicom_mark(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(132)[128:] == DICOM_MARK
    except OSError:  # said by whoever reads its pixels
        return False


def looks_like_image(beginning: bytes) -> bool:
    """Whether a file begins as a picture or a DICOM file does, whatever it is called; of formats whose mark
    is a mere letter or two the name must say it.

    >>> looks_like_image(b"\\x89PNG\\r\\n\\x1a\\n"), looks_like_image(b"{}")
    (True, False)
    """
    marks = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*")
    is_webp = beginning[:4] == b"RIFF" and beginning[8:12] == b"WEBP"
    return beginning.startswith(marks) or is_webp or beginning[128:132] == DICOM_MARK


def read_image(path: Path | str, *, rescaled: bool = False) -> Image.Image:
    """The image at `path` as `RGB` or `L` with 8 bits a channel, decoded completely.

    Transparency is laid on white, 16 bits are scaled from 0..65535 to 0..255, numbers of an unknown scale
    (floating-point, 32 bits) from their own range in the image, a palette becomes its colors, and each kind
    of conversion is logged once. The camera's orientation is applied. DICOM files, of any name, are read
    through their window. Of a file with several pictures one is named as `scan.dcm#3` or `pages.tif#2`.

    Args:
        path: an image or DICOM file
        rescaled: whether the caller scales values of more than 8 bits itself: the usual way is not told then

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     Image.new("RGB", (6, 4)).save(Path(folder) / "a.png")
    ...     read_image(Path(folder) / "a.png").size
    (6, 4)
    """
    from protopfaith.data.frames import split_frame

    path, frame = split_frame(instance(path, (str, Path), "An image", "the path of a file"))
    if not is_file(path):
        raise no_image(path, alone=True)
    if is_dicom(path):
        from protopfaith.data.dicom import read_dicom

        return read_dicom(path, frame, rescaled=rescaled)
    return decoded(path, frame, lambda image: to_rgb_or_gray(image, rescaled=rescaled))


def decoded(path: Path, frame: int | None, convert: Callable[[Image.Image], T]) -> T:
    """What `convert` makes of a picture that is read completely and upright; raises in one sentence where it
    cannot be read.

    Args:
        path: no DICOM file
        frame: which of its pictures, from 1; None: the first
        convert: gets the picture in whatever mode Pillow reads it
    """
    from protopfaith.data.frames import check_frame

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's own about large images: ours is an error
            with opened(path) as image:
                check_pixels(*image.size, f"The image {named(path)}")
                if frame is None:
                    _tell_frames(image)
                else:
                    image.seek(check_frame(path, frame, getattr(image, "n_frames", 1)))
                    check_pixels(*image.size, f"The image {named(path)}")  # pages have sizes of their own
                check_undamaged(path, image.format)
                image.load()
                if image.mode == "P" and not image.getpalette():
                    raise ValueError("its palette is missing")
                return convert(upright(image))
    except ProtoPFaithError:
        raise
    except Image.DecompressionBombError as error:  # beyond twice Pillow's own limit
        raise ProtoPFaithError(
            f"The image {named(path)} has more than {limit('PROTOPFAITH_MAX_PIXELS'):,} pixels; make it "
            "smaller, or raise the limit by the environment variable PROTOPFAITH_MAX_PIXELS."
        ) from error
    # Pillow's decoders raise whatever broken bytes lead them into: OSError, SyntaxError, struct.error, ...
    except Exception as error:
        if path.suffix.lower() in LISTS:
            raise ProtoPFaithError(
                f"{named(path)} is a list, not an image; give the images in it, or use explain --bulk, which "
                "reads lists."
            ) from error
        raise ProtoPFaithError(
            f"The image {named(path)} cannot be read ({_one_line(error, path)}); replace or remove it (a "
            "data set can also be loaded without: data.skip_unreadable=true)."
        ) from error


@contextmanager
def opened(path: Path) -> Iterator[Image.Image]:
    """A picture of the formats that are read, not yet decoded. Pillow is given the open file and no name: by
    a name it would map plain TIFF files into memory, and mixes up the pixels of those that are turned."""
    _raise_limit_of_pillow()
    with path.open("rb") as file, Image.open(file, formats=FORMATS) as image:
        yield image


def _raise_limit_of_pillow() -> None:
    """Pillow has a limit of its own, which must not be below one that the user has raised. Otherwise it stays
    as it is: it belongs to the whole program."""
    most, usual = limit("PROTOPFAITH_MAX_PIXELS"), Image.MAX_IMAGE_PIXELS
    if usual is not None and most > usual:
        Image.MAX_IMAGE_PIXELS = most


def upright(image: Image.Image) -> Image.Image:
    """The image turned as its camera was held; as it is where the notes of the camera cannot be read, which
    say nothing about the pixels.

    >>> upright(Image.new("L", (6, 4))).size
    (6, 4)
    """
    try:
        turned = image.getexif().get(ExifTags.Base.Orientation, 1) != 1
        return ImageOps.exif_transpose(image) if turned else image
    except Exception:  # Pillow raises whatever broken notes lead it into: SyntaxError, struct.error, ...
        return image


def no_image(path: Path, *, alone: bool = False) -> ProtoPFaithError:
    """Why there is no image to read at a path, in one sentence.

    Args:
        path: of no file
        alone: a single image is wanted, whatever a folder holds
    """
    name = named(path)[-300:]
    if not is_folder(path):
        return ProtoPFaithError(f"There is no image at {name}; check the path.")
    if not os.access(path, os.R_OK | os.X_OK):
        return ProtoPFaithError(
            f"The folder {name} cannot be read (Permission denied); check its permissions."
        )
    if alone and any(one.suffix.lower() in SUFFIXES for one in islice(path.rglob("*"), LOOKED_AT)):
        return ProtoPFaithError(f"{name} is a folder, where an image is expected; give one of its files.")
    return ProtoPFaithError(f"The folder {name} holds no images; give image files or another folder.")


def _tell_frames(image: Image.Image) -> None:
    if getattr(image, "is_animated", False):
        say_once(
            "Animated images and files of several pages are read as their first picture; give another one as "
            "name.tif#2, or with --frame."
        )


def to_rgb_or_gray(image: Image.Image, *, rescaled: bool = False) -> Image.Image:
    """Converts any Pillow mode to `RGB` or `L`.

    >>> to_rgb_or_gray(Image.new("LA", (4, 4))).mode
    'L'
    """
    if image.mode in ("RGB", "L"):
        keyed = with_alpha(image)
        return image if keyed is image else to_rgb_or_gray(keyed)
    if image.mode == "P":
        say_once("Images with a palette are converted to their colors.")
        palette = image.getpalette()
        if palette and 3 * int(np.asarray(image).max(initial=0)) >= len(palette):
            say_once("Pixels of a color that an image's palette does not have are black.")
        return to_rgb_or_gray(image.convert("RGBA" if "transparency" in image.info else "RGB"))
    if image.mode in ("RGBA", "LA", "PA", "RGBa", "La"):
        say_once("Images with an alpha channel are laid on a white background.")
        return _on_white(image)
    if has_numbers(image):
        values, key = np.asarray(image), image.info.get("transparency")
        gray = _from_numbers(values, floating=image.mode == "F", tell=not rescaled)
        return gray if type(key) is not int else _on_white(_with_mask(gray, values != key))
    return image.convert("L" if image.mode == "1" else "RGB")


def with_alpha(image: Image.Image) -> Image.Image:
    """The image with an alpha channel in the place of the one color that is transparent wherever it stands,
    which PNG files may name; as it is where there is none.

    Args:
        image: `RGB` or `L`

    >>> image = Image.new("L", (4, 4), 7)
    >>> image.info["transparency"] = 7
    >>> with_alpha(image).getpixel((0, 0))
    (7, 0)
    """
    key = image.info.get("transparency")
    color = key if isinstance(key, tuple) else (key,)
    if len(color) != len(image.getbands()) or not all(type(value) is int for value in color):
        return image
    if max(color) > 255:  # of 16 bits, of which Pillow keeps the upper 8
        color = tuple(value >> 8 for value in color)
    pixels = np.asarray(image).reshape(image.height, image.width, -1)
    return _with_mask(image, (pixels != color).any(2))


def _with_mask(image: Image.Image, opaque: np.ndarray) -> Image.Image:
    found = image.copy()
    found.info.pop("transparency", None)
    found.putalpha(Image.fromarray(opaque.astype(np.uint8) * 255))
    return found


def has_numbers(image: Image.Image) -> bool:
    """Whether pixels have more than 8 bits: their scale is not known by itself."""
    return image.mode.startswith("I") or image.mode == "F"


def with_channels(image: Image.Image, channels: int) -> Image.Image:
    """An `RGB` or `L` image with 3 or 1 channels."""
    mode = {1: "L", 3: "RGB"}[channels]
    if image.mode == mode:
        return image
    if mode == "RGB":
        say_once("Images with one channel are repeated in three, which the network expects.")
    else:
        say_once("Images in color are converted to one channel, which the network expects.")
    return image.convert(mode)


def _on_white(image: Image.Image) -> Image.Image:
    rgba = image.convert("RGBA")
    flat = Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba)
    return flat.convert("L" if image.mode in ("LA", "La") else "RGB")


def _from_numbers(values: np.ndarray, *, floating: bool, tell: bool) -> Image.Image:
    """Pillow has 16 bits in modes of 32, too: the values tell."""
    low, high = finite_range(values)
    if floating and not np.isfinite(values).all():
        say_once("Pixels that are no numbers (NaN) are black, those of infinity as the image's limits.")
    if floating or low < 0 or high > 65535:
        how = (
            "Images with floating-point or 32-bit pixels are scaled to 8 bits from their own range, each "
            "from its darkest to its brightest pixel."
        )
    else:
        how = "Images with 16 bits a pixel are scaled from 0..65535 to 8 bits."
        low, high = 0.0, 65535.0
    if tell:
        say_once(how)
    return Image.fromarray(spread(values, low, high))


def _one_line(error: Exception, path: Path) -> str:
    """What Pillow says, without the path, which the sentence has already."""
    if isinstance(error, UnidentifiedImageError):
        if is_file(path) and not path.stat().st_size:
            return "it is empty"
        if _has_dicom_mark(path):
            return "it is a DICOM file by the name of a picture: rename it to end in .dcm"
        return f"it is none of the formats {', '.join(FORMATS)}, or a variety that is not supported"
    return decoding_reason(error).replace(os.fspath(path), "the file")

"""Masks: pictures that mark where something is, whatever their pixels are called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from protopfaith.data.frames import split_frame
from protopfaith.data.images import decoded, has_numbers, is_dicom, read_image, with_alpha
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_file

NEGATIVE = "A mask is zero except for the object, where it is more; this one has negative numbers."
MOST_MARKED = 0.99  # of all pixels
MOST_COLORS = 256  # of a picture whose colors are labels
GRAY = 16  # steps between channels of a color that may come of JPEG
LOOKED_AT = 1_000_000  # pixels


def read_marks(path: Path | str) -> np.ndarray:
    """Which pixels a picture marks (H x W, bool): those that are neither black nor transparent.

    Its values are not scaled to 8 bits as a photograph's are: of a picture of labels with 16 bits the label 1
    would be black.

    Args:
        path: an image or DICOM file

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     Image.new("I;16", (2, 1), 1).save(Path(folder) / "labels.png")
    ...     read_marks(Path(folder) / "labels.png").tolist()
    [[True, True]]
    """
    file, frame = split_frame(path)
    if not is_file(file) or is_dicom(file):
        return marks(read_image(path))
    return decoded(file, frame, marks)


def marks(image: Image.Image) -> np.ndarray:
    """The same of a picture that is open already.

    Args:
        image: of any mode

    >>> marks(Image.new("RGBA", (1, 1), (255, 255, 255, 0))).tolist()
    [[False]]
    """
    if has_numbers(image):
        values = np.asarray(image)
        if np.isnan(values).any():
            raise ProtoPFaithError("A mask has a number for each pixel; this one has NaN.")
        if (values < 0).any():
            raise ProtoPFaithError(NEGATIVE)
        return values != 0
    if image.mode in ("RGB", "L"):
        image = with_alpha(image)
    rgba = np.asarray(image.convert("RGBA"))
    there = rgba[..., :3].any(2) & (rgba[..., 3] > 0)
    _check_no_photograph(rgba, there)
    return there


def _check_no_photograph(rgba: np.ndarray, there: np.ndarray) -> None:
    """Raises if colors are as many, and black as rare, as in no picture that marks something."""
    if there.mean() < MOST_MARKED:  # an object cut out of its photograph is a mask
        return
    step = max(1, there.size // LOOKED_AT)
    colors = np.unique(rgba[..., :3].reshape(-1, 3)[::step], axis=0)
    colored = colors.max(1) - colors.min(1) > GRAY
    if int(colored.sum()) > MOST_COLORS:
        raise ProtoPFaithError(
            f"A mask is black except for the object, but this is a photograph, of more than {MOST_COLORS} "
            "colors without black; give a picture that marks the object."
        )

"""Masks: pictures that mark where something is, whatever their pixels are called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from protopfaith.data.frames import split_frame
from protopfaith.data.images import decoded, has_numbers, is_dicom, read_image, with_alpha
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_file


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
        return values != 0
    if image.mode in ("RGB", "L"):
        image = with_alpha(image)
    rgba = np.asarray(image.convert("RGBA"))
    return rgba[..., :3].any(2) & (rgba[..., 3] > 0)

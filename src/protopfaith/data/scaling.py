"""From values of more than 8 bits to gray: which value is black, which is white."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from protopfaith.arguments import finite_number, instance, shown
from protopfaith.data.eight_bits import STRIP, finite_range
from protopfaith.data.frames import split_frame
from protopfaith.data.images import has_numbers, is_dicom, opened, read_image, upright
from protopfaith.errors import ProtoPFaithError

RANGE = "range"
MOST_BITS = 32


@dataclass(frozen=True)
class Scaling:
    """How values of DICOM files and of images with 16 or 32 bits become 8 bits; other files have these.

    The same values give the same picture, whatever the format. Where nothing is said, a DICOM file is shown
    through the window of its header (or from its own range), and 16 bits are taken as 0..65535.

    Args:
        bits: 12 for values from 0 to 4095, or `"range"` for each file's own range.
        window: center and width of the values that are shown; it goes before `bits`.

    >>> Scaling(bits=12).to_8_bits(np.array([[0, 2048, 4095]])).tolist()
    [[0, 128, 255]]
    >>> Scaling(window=(40, 80)).to_8_bits(np.array([[-100, 40, 300]])).tolist()
    [[0, 128, 255]]
    """

    bits: int | str | None = None
    window: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        bits = int(self.bits) if isinstance(self.bits, str) and self.bits.isdecimal() else self.bits
        known = bits is None or (isinstance(bits, str) and bits == RANGE)
        if not known and not (isinstance(bits, int) and 1 <= bits <= MOST_BITS):
            raise ProtoPFaithError(
                f"The bits of pixel values are a number from 1 to {MOST_BITS} or {RANGE!r}, not "
                f"{shown(bits)}."
            )
        object.__setattr__(self, "bits", bits)
        if self.window is not None:
            given = instance(self.window, (tuple, list), "A window", "its center and its width")
            window = tuple(finite_number(value, "A number of the window") for value in given)
            if len(window) != 2 or not window[1] > 0:
                raise ProtoPFaithError(
                    f"A window is its center and its width, which is above zero, not {shown(list(given))}."
                )
            object.__setattr__(self, "window", window)

    @property
    def is_usual(self) -> bool:
        """Whether nothing was said."""
        return self.bits is None and self.window is None

    @property
    def name(self) -> str:
        """A short text that tells it from others; empty where nothing was said."""
        window = "" if self.window is None else "-window{:g},{:g}".format(*self.window)
        return ("" if self.bits is None else f"-bits{self.bits}") + window

    def read(self, path: Path | str) -> Image.Image:
        """The image at `path` as `RGB` or `L`."""
        usual = read_image(path, rescaled=not self.is_usual)  # says whatever is wrong with the file
        if self.is_usual:
            return usual
        values, inverted = _values(Path(path))
        if values is None:
            return usual
        gray = self.to_8_bits(values)
        return Image.fromarray(255 - gray if inverted else gray)

    def to_8_bits(self, values: np.ndarray) -> np.ndarray:
        """Values of any kind as uint8."""
        low, high = self._ends(values)
        result = np.empty(values.shape, np.uint8)
        for start in range(0, len(values), STRIP):
            strip = values[start : start + STRIP].astype(np.float64)
            scaled = np.clip((strip - low) / max(high - low, 1e-12), 0, 1)
            result[start : start + STRIP] = np.floor(255 * np.nan_to_num(scaled) + 0.5)
        return result

    def _ends(self, values: np.ndarray) -> tuple[float, float]:
        """The values that are black and white."""
        if self.window is not None:
            center, width = self.window
            return center - width / 2, center + width / 2
        if isinstance(self.bits, int):
            return 0.0, float(2**self.bits - 1)
        return finite_range(values)


def _values(path: Path) -> tuple[np.ndarray | None, bool]:
    """The values of a file as they were measured, and whether large ones are dark; None for plain 8 bits."""
    path, frame = split_frame(path)
    if is_dicom(path):
        from protopfaith.data.dicom import raw_values

        return raw_values(path, frame)
    with opened(path) as image:
        if frame is not None:
            image.seek(frame - 1)
        if not has_numbers(image):
            return None, False
        image.load()  # turns TIFF files itself
        return np.asarray(upright(image)), False

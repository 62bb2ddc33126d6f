from __future__ import annotations

import numpy as np
import pytest

from protopfaith.show.sheet import Sheet


def test_places_are_inches_from_the_top_left_corner() -> None:
    sheet = Sheet(4, 3)
    sheet.image(np.ones((2, 2, 3)), (1.0, 0.5, 2.0, 1.0))
    sheet.figure.canvas.draw()
    box = sheet.axes.get_images()[0].get_window_extent()
    dpi = sheet.figure.dpi
    assert box.x0 / dpi == pytest.approx(1.0)
    assert box.y1 / dpi == pytest.approx(3 - 0.5)
    assert box.width / dpi == pytest.approx(2.0)


def test_nothing_moves_what_is_there_already() -> None:
    sheet = Sheet(4, 3)
    sheet.image(np.ones((2, 2, 3)), (1.0, 0.5, 2.0, 1.0))
    sheet.lines([[(0, 0), (9, 9), (0, 9)]], (0.0, 0.0, 9.0, 9.0), (9, 9), color="black", width=1.0)
    assert sheet.axes.get_xlim() == (0, 4)
    assert sheet.axes.get_ylim() == (3, 0)

from __future__ import annotations

import numpy as np

from protopfaith.show.colors import diverging, overlay, plain_colors


def test_colors_are_centered_at_zero_and_say_the_sign() -> None:
    warm, clear, cool = overlay(np.array([[2.0, 0.0, -2.0]]), 2.0)[0]
    assert clear[3] == 0
    assert warm[0] > warm[2]  # red above blue
    assert cool[2] > cool[0]
    assert warm[3] == cool[3] == overlay(np.array([5.0]), 2.0)[0, 3]  # beyond the scale is its end
    assert np.allclose(diverging()(0.5)[:3], 1, atol=0.03)


def test_color_blind_readers_can_tell_the_signs_apart() -> None:
    """Orange and blue as a deuteranope sees them (Machado et al. 2009, full severity) differ widely in
    blue."""
    deuteranopia = np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]])
    for size in (0.3, 0.6, 1.0):
        warm, cool = (deuteranopia @ overlay(np.array([s * size]), 1.0)[0, :3] for s in (1, -1))
        assert np.abs(warm - cool).max() > 0.25


def test_colors_without_a_sign_grow_lighter() -> None:
    lightness = plain_colors(np.linspace(0, 1, 5), 0.0, 1.0).mean(-1)
    assert (np.diff(lightness) > 0).all()
    assert np.array_equal(
        plain_colors(np.array([-3.0, 9.0]), 0.0, 1.0)[[0, 1]], plain_colors(np.array([0.0, 1.0]), 0.0, 1.0)
    )

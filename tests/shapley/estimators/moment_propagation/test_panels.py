import math
from itertools import pairwise

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from protopfaith.shapley.estimators.moment_propagation.panels import find_panels


def _kinked(places, calls=None):
    """Straight between the places, with a kink of its own size at each; one output more that is smooth."""

    def curve(theta):
        x = torch.as_tensor(theta)
        if calls is not None:
            calls.extend(np.asarray(theta).tolist())
        kinks = sum((-1) ** k * (k + 1) * (x - c).clamp_min(0) for k, c in enumerate(places))
        return torch.stack([kinks + 0 * x, x.sin()], 1)

    return curve


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0.01, 1.5), min_size=1, max_size=4), st.sampled_from([0.1, 0.02, 0.002]))
def test_panels_cover_the_path_and_are_straight_enough(places, tolerance):
    curve = _kinked(places)
    panels = find_panels(curve, 0.0, math.pi / 2, tolerance=tolerance, most=4000)
    assert panels[0].start == 0
    assert panels[-1].end == math.pi / 2
    for before, after in pairwise(panels):
        assert before.end == after.start
        assert torch.equal(before.values[-1], after.values[0])
    for panel in panels:
        theta = np.linspace(panel.start, panel.end, 5)
        assert torch.allclose(panel.values, curve(theta), atol=1e-12)
    fine = curve(np.linspace(0, math.pi / 2, 2001))
    bends = torch.stack([panel.bend for panel in panels]) / (fine.amax(0) - fine.amin(0)).clamp_min(1e-12)
    assert float(bends.square().sum(0).sqrt().max()) <= 1.1 * tolerance


def test_values_are_taken_where_the_kink_is():
    calls = []
    panels = find_panels(_kinked([0.3], calls), 0.0, math.pi / 2, tolerance=1e-4, most=1000)
    near = [panel for panel in panels if panel.start <= 0.3 <= panel.end]
    assert max(panel.end - panel.start for panel in near) < 1e-2
    assert len(calls) < 120  # an even grid of that width has 600
    assert len(set(calls)) == len(calls)  # nothing is asked twice


def test_only_the_outputs_that_count_are_looked_at():
    """The second one is smooth: the kink of the first is not followed."""
    plan = {"tolerance": 1e-4, "most": 1000}
    both, smooth = (
        find_panels(_kinked([0.3]), 0.0, math.pi / 2, outputs=outputs, **plan) for outputs in (None, [1])
    )
    alone = find_panels(lambda theta: _kinked([0.3])(theta)[:, 1:], 0.0, math.pi / 2, **plan)
    assert len(smooth) < len(both)
    assert [(p.start, p.end) for p in smooth] == [(p.start, p.end) for p in alone]
    assert smooth[0].values.shape == (5, 2)  # the others' values come all the same


def test_the_number_of_values_is_bounded():
    calls = []
    find_panels(_kinked([0.3, 0.7, 1.1], calls), 0.0, math.pi / 2, tolerance=1e-12, most=90)
    assert len(calls) <= 93


def test_a_constant_curve_needs_no_panels_but_the_first():
    panels = find_panels(lambda theta: torch.ones(len(theta), 3), 0.0, 1.0, tolerance=0.01, most=1000)
    assert len(panels) == 8

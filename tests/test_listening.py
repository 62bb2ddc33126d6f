import pytest
import torch

import protopfaith as pf
from protopfaith.errors import ProtoPFaithError
from protopfaith.listening import EVALUATIONS, STAGES, check_listener, passing_through

IMAGE = torch.ones(1, 4, 4)


def total(images):
    return images.flatten(1).sum(1)


class Report:
    def told(self, done, expected): ...

    def __call__(self, *anything): ...


@pytest.mark.parametrize("listener", [None, print, max, Report(), Report().told, lambda a, b, c=1: None])
def test_whoever_takes_the_arguments_may_listen(listener):
    check_listener(listener, EVALUATIONS)


@pytest.mark.parametrize("listener", [lambda: 1, lambda a: 1, lambda *, a: 1, Report().told, 3, "print"])
def test_who_does_not_is_told_which_they_are(listener):
    with pytest.raises(ProtoPFaithError, match=r"The progress .*what is done, how much of it is done"):
        check_listener(listener, STAGES)


@pytest.mark.parametrize(
    "explained",
    [
        lambda tell: pf.explain_function(total, IMAGE, players=1, budget=200, progress=tell),
        lambda tell: pf.estimate(pf.Game(total, IMAGE, 1), budget=200, progress=tell),
        lambda tell: pf.estimate(pf.Game(total, IMAGE, 2), "exact", progress=tell),
    ],
)
def test_what_a_listener_raises_is_nobody_elses_fault(explained):
    def fails(done, expected):
        raise LookupError("full")

    with pytest.raises(LookupError, match="full"):
        explained(fails)
    with pytest.raises(ProtoPFaithError, match="The progress is called with 2 arguments"):
        explained(lambda done: None)


def test_of_two_that_listen_each_ones_exception_is_its_own():
    def fails(*told):
        raise LookupError("full")

    def through_another(outer):
        try:
            with passing_through(outer) as inner, passing_through(print):
                inner(1, 2)
        except Exception:  # whatever explains exceptions of its own
            pytest.fail("the exception was caught on its way")

    with pytest.raises(LookupError), passing_through(fails) as outer:
        through_another(outer)


def test_nobody_is_told_nothing():
    with passing_through(None) as tell:
        assert tell is None

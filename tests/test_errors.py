from __future__ import annotations

import pickle

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.training import load_recipe


def test_what_the_user_can_fix_is_one_line_and_an_ordinary_exception() -> None:
    with pytest.raises(Exception, match="nothing_of_this_name") as caught:
        load_recipe("nothing_of_this_name")
    assert type(caught.value) is ProtoPFaithError
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith(".")


def test_it_reaches_other_processes_as_it_is() -> None:
    """Workers that read images send theirs to the process that asked."""
    sent = pickle.loads(pickle.dumps(ProtoPFaithError("Two is too much; give one.")))
    assert type(sent) is ProtoPFaithError
    assert str(sent) == "Two is too much; give one."


def test_a_mistake_in_a_program_is_something_else() -> None:
    assert not issubclass(ProtoPFaithError, (ValueError, RuntimeError, OSError))

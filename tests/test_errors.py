from __future__ import annotations

import pickle

import pytest
import torch

from protopfaith.errors import ProtoPFaithError, is_out_of_memory
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


def test_memory_that_ran_out_is_known_on_any_device() -> None:
    for error in (MemoryError(), torch.OutOfMemoryError("x"), RuntimeError("CUDA error: out of memory")):
        assert is_out_of_memory(error)
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**60)
    assert is_out_of_memory(caught.value)
    assert not is_out_of_memory(RuntimeError("a wrong shape"))
    assert not is_out_of_memory(ProtoPFaithError("It ran out of memory."))

from __future__ import annotations

import pytest
import torch

from protopfaith.devices import choose_autocast, choose_device
from protopfaith.errors import ProtoPFaithError


def test_auto_is_something_that_works() -> None:
    device = choose_device("auto")
    assert torch.ones(1, device=device).item() == 1


@pytest.mark.parametrize("name", ["gpu9", "cuda:99", "nothing", ""])
def test_what_is_not_there_is_one_sentence(name) -> None:
    with pytest.raises(ProtoPFaithError, match="is not available"):
        choose_device(name)


def test_autocast_by_name_or_type() -> None:
    cpu = torch.device("cpu")
    assert choose_autocast("float16", cpu) == torch.float16
    assert choose_autocast(torch.bfloat16, cpu) == torch.bfloat16
    assert choose_autocast("off", cpu) is choose_autocast(None, cpu) is choose_autocast("auto", cpu) is None
    with pytest.raises(ProtoPFaithError, match="autocast type 'float8' is not known"):
        choose_autocast("float8", cpu)

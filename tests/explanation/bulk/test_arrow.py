"""pyarrow where it is installed; where it is not, one sentence says how."""

from __future__ import annotations

import sys

import pyarrow
import pyarrow.parquet
import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation.bulk.arrow import pyarrow_module


def test_it_is_the_module_itself() -> None:
    assert pyarrow_module() is pyarrow
    assert pyarrow_module("parquet") is pyarrow.parquet


@pytest.mark.parametrize("name", ["", "parquet"])
def test_without_it_one_sentence_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [one for one in sys.modules if one.partition(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    with pytest.raises(ProtoPFaithError, match=r"install it with: pip install 'protopfaith\[bulk\]'"):
        pyarrow_module(name)

"""All data sets are known, whichever file is imported first."""

from __future__ import annotations

import subprocess
import sys

import pytest

from protopfaith.cli.names import PACKAGE, PLACES, _written
from protopfaith.data.known import DATASETS


def test_every_data_set_in_the_files_is_known() -> None:
    assert sorted(DATASETS) == _written("DATASETS", PACKAGE / PLACES["DATASETS"][2])


@pytest.mark.parametrize("first", ["external", "registry", "cub"])
def test_it_does_not_matter_which_file_is_imported_first(first: str) -> None:
    code = f"import protopfaith.data.{first}; from protopfaith.data import DATASETS; print(*sorted(DATASETS))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(DATASETS)


def test_names_of_the_package_load_torch_only_when_they_are_used() -> None:
    code = "import sys, protopfaith.data.roots, protopfaith.data.images; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

from __future__ import annotations

from pathlib import Path

import pytest
from safetensors import safe_open

from tests.cli.conftest import fails_with, protopfaith


def test_prune_makes_a_smaller_run(place: Path, run: Path) -> None:
    done = protopfaith(place, "prune", str(run), "--prototypes", "0", "--out", "runs/pruned")
    assert done.returncode == 0, done.stderr
    with safe_open(place / "runs" / "pruned" / "model.safetensors", "pt") as file:
        assert file.get_tensor("prototypes").shape == (5, 8)
    assert protopfaith(place, "evaluate", "runs/pruned").returncode == 0
    assert protopfaith(place, "prune", str(run), "--prototypes", "1").returncode == 0
    assert (place / "runs" / "tiny-pruned" / "model.safetensors").is_file()


def test_prune_where_the_images_have_moved(place: Path, run: Path, tmp_path: Path) -> None:
    """The new run knows where they are now."""
    done = protopfaith(
        tmp_path, "prune", str(run), "--prototypes", "0", "--out", "new", "--root", str(place / "images")
    )
    assert done.returncode == 0, done.stderr
    assert protopfaith(tmp_path, "evaluate", "new").returncode == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--prototypes", "1", "--tolerance", "1"], "--prototypes or --tolerance"),
        (["--prototypes", "0,2,0"], "Prototype 0 is to go twice"),
    ],
)
def test_options_that_do_not_go_together_are_told(
    place: Path, run: Path, tmp_path: Path, options: list[str], words: str
) -> None:
    done = protopfaith(place, "prune", str(run), *options, "--out", str(tmp_path / "new"))
    fails_with(done, words)
    assert not (tmp_path / "new").exists()

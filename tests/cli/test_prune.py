from __future__ import annotations

from pathlib import Path

from safetensors import safe_open

from tests.cli.conftest import protopfaith


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

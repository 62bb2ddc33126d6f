"""Wrong paths and names are answered before anything heavy is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from protopfaith.cli.checks import check_images, check_recipe
from protopfaith.errors import ProtoPFaithError
from protopfaith.training import recipe_names

PROGRAM = """
import sys
from protopfaith.cli import main
try:
    main()
except SystemExit as stop:
    print("code", stop.code)
print("heavy", sorted({"torch", "torchvision", "lightning", "matplotlib", "pandas"} & set(sys.modules)))
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["explain", "nowhere", "x.png"], 1),
        (["explain", "run", "nofile.png"], 1),
        (["explain", "run", "x.png", "--nonsense"], 2),
        (["explain", "run", "here.png", "--root", "nowhere"], 1),
        (["predict", "run", "nofile.png", "neither.png"], 1),
        (["evaluate", "nowhere"], 1),
        (["prototypes", "nowhere"], 1),
        (["faithfulness", "nowhere"], 1),
        (["prune", "nowhere"], 1),
        (["train", "nonsense"], 1),
        (["train", "missing.yaml"], 1),
        (["train", "folder", "--root", "nowhere"], 1),
        (["data", "prepare", "folder", "--root", "nowhere"], 1),
        (["nonsense"], 2),
    ],
)
def test_a_typo_is_answered_without_torch(tmp_path: Path, arguments: list[str], code: int) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.yaml").touch()
    (tmp_path / "here.png").touch()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-2:] == [f"code {code}", "heavy []"], done.stderr
    assert "Traceback" not in done.stderr


def test_every_recipe_passes(tmp_path: Path) -> None:
    for name in recipe_names():
        check_recipe(name)
    mine = tmp_path / "mine.yaml"
    mine.touch()
    check_recipe(str(mine))
    with pytest.raises(ProtoPFaithError, match="did you mean 'birds'"):
        check_recipe("brids")


def test_a_missing_image_stops_nothing_where_others_are_there(tmp_path: Path) -> None:
    there, gone = tmp_path / "there.png", tmp_path / "gone.png"
    there.touch()
    check_images([gone, there])
    with pytest.raises(ProtoPFaithError, match=r"no image at .*gone\.png"):
        check_images([gone])

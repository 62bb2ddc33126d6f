from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explainer, Settings
from protopfaith.explanation.case_names import case_name

QUICK = Settings(players=16, budget=64)
LEFT = torch.zeros(48, 48).index_fill_(1, torch.arange(24), 1)


def test_the_same_question_has_the_same_name(explainer: Explainer, bird_file: Path, tmp_path: Path) -> None:
    elsewhere = Path(shutil.copy(bird_file, tmp_path))
    name = case_name(explainer, bird_file, QUICK)
    assert case_name(explainer, elsewhere, QUICK) == name
    assert re.fullmatch("a_bird-[0-9a-f]{8}", name)


def test_whatever_changes_the_explanation_changes_the_name(explainer: Explainer, bird_file: Path) -> None:
    asked: list[dict[str, Any]] = [
        {},
        {"settings": Settings(players=16, budget=65)},
        {"settings": Settings(players=16, budget=64, second_baseline="mean")},
        {"settings": Settings(players=16, budget=64, sources=False)},
        {"settings": Settings(players=16, budget=64, output="logit")},
        {"target": 1},
        {"versus": 1},
        {"mask": LEFT},
        {"mask": 1 - LEFT},
    ]
    names = [case_name(explainer, bird_file, **{"settings": QUICK, **one}) for one in asked]
    assert len(set(names)) == len(asked)


def test_another_image_has_another_name(explainer: Explainer, bird_file: Path, tmp_path: Path) -> None:
    other = tmp_path / bird_file.name
    shutil.copy(bird_file, other)
    with other.open("ab") as file:
        file.write(b"more")
    assert case_name(explainer, other, QUICK) != case_name(explainer, bird_file, QUICK)


@pytest.mark.parametrize("name", ["../up", "a b/c:d", "...", "", "x" * 500, "日本"])
def test_a_name_is_that_of_one_plain_folder(explainer: Explainer, bird_file: Path, name: str) -> None:
    found = case_name(explainer, bird_file, QUICK, name=name)
    assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*", found)
    assert len(found) < 80


def test_what_is_no_image_file_is_an_error(explainer: Explainer, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.png"):
        with pytest.raises(ProtoPFaithError):
            case_name(explainer, path, QUICK)

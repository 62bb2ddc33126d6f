from __future__ import annotations

import json
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from PIL import Image

from protopfaith.evaluation.results import Faithfulness
from protopfaith.network import ProtoPNet
from protopfaith.show.faithfulness.files import write


@pytest.fixture
def bench(judgment: Faithfulness) -> SimpleNamespace:
    """What files ask a bench: images of the prototypes' sources, and maps of each explainer on them."""
    subjects = [SimpleNamespace(pixels=torch.zeros(3, 12, 12), prototypes=judgment.prototypes)]
    maps = {p: torch.rand(12, 12) for p in judgment.prototypes}
    return SimpleNamespace(subjects=subjects, maps=lambda name: maps)


def test_the_folder_holds_numbers_figures_settings_and_a_page(
    judgment: Faithfulness, bench: SimpleNamespace
) -> None:
    model = ProtoPNet("small", list("abcd"), prototypes_per_class=3, prototype_channels=8)
    write(judgment, bench, model, "A title")  # type: ignore[arg-type]
    folder = judgment.folder
    assert json.loads((folder / "settings.json").read_text()) == judgment.settings
    explainers = pd.read_csv(folder / "explainers.csv", index_col=0)
    assert explainers["n"].to_list() == [len(one.prototypes) for one in judgment.results]
    rows = pd.read_csv(folder / "prototypes.csv")
    assert len(rows) == sum(len(one.prototypes) for one in judgment.results)
    common = pd.read_csv(folder / "explainers_common.csv", index_col=0)
    assert set(common["n"]) == {2}  # one explainer was judged on two prototypes only
    figures = sorted(path.stem for path in folder.glob("*.png"))
    assert figures == ["curves", "curves_common", "examples", "scores"]
    for name in figures:
        with Image.open(folder / f"{name}.png") as picture:
            picture.verify()
    page = judgment.page.read_text(encoding="utf-8")
    assert "A title" in page
    assert page.count("data:image/png;base64,") == len(figures)
    assert not [path for path in folder.iterdir() if "partial" in path.name]

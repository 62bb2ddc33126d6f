"""The notebook runs from top to bottom, and its results show themselves."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from protopfaith.explanation import Explanation
from protopfaith.shapley import Game, Players, estimate
from protopfaith.show.notebook import ShownAttribution

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "explain.ipynb"


def test_an_explanation_shows_itself(explanation: Explanation) -> None:
    shown = explanation._repr_html_()
    assert explanation.title in shown
    assert "relative error" in shown
    assert shown.count("<img") == 2 + 3 * len(explanation.evidence)
    assert "<script" not in shown  # survives being exported, and being looked at by someone careful


def test_no_column_is_left_for_sources_that_are_not_shown(explanation: Explanation) -> None:
    alone = tuple(replace(one, source_side=None) for one in explanation.evidence)
    shown = replace(explanation, evidence=alone)._repr_html_()
    assert "source image" not in shown
    assert shown.count("<img") == 2 + len(alone)


@pytest.mark.parametrize(("method", "error"), [("moment_path", "unknown"), ("exact", "0%")])
def test_an_attribution_shows_its_error_only_where_it_is_known(method: str, error: str) -> None:
    image = torch.rand(1, 4, 4)
    game = Game(
        lambda x: torch.conv2d(x, torch.ones(1, 1, 4, 4)).relu()[:, :, 0, 0],
        image,
        Players.windows((4, 4), 2),
    )
    assert f"relative error {error}." in ShownAttribution(estimate(game, method))._repr_html_()


def _shorten_training(notebook: Any) -> None:
    """Fewer epochs and images; all else runs as readers see it."""
    (cell,) = (cell for cell in notebook.cells if "schedule.pretraining.epochs=" in cell.source)
    fewer, epochs = re.subn(r"epochs=\d+", "epochs=1", cell.source)
    cell.source, images = re.subn(r"train: \d+", "train: 48", fewer)
    assert (epochs, images) == (4, 1)


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    stored = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("text/html" in output.get("data", {}) for output in stored) == 3  # readers see it as it ran
    assert all(output["output_type"] != "error" for output in stored)
    assert NOTEBOOK.stat().st_size < 400_000
    _shorten_training(notebook)
    nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    assert sum("text/html" in output["data"] for output in shown) == 3

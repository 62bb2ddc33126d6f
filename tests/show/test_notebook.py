"""The notebook runs from top to bottom, and its results show themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from protopfaith.explanation import Explanation

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "explain.ipynb"


def test_an_explanation_shows_itself(explanation: Explanation) -> None:
    shown = explanation._repr_html_()
    assert explanation.title in shown
    assert "relative error" in shown
    assert shown.count("<img") == 2 + 3 * len(explanation.evidence)
    assert "<script" not in shown  # survives being exported, and being looked at by someone careful


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)  # stored without results
    nbclient.NotebookClient(
        notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    assert sum("text/html" in output["data"] for output in shown) == 3

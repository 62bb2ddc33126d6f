"""A case that is saved is what `explain` writes."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import httpx
import numpy as np
import torch

from protopfaith.explanation import Explainer, load_explanation
from protopfaith.serve.server import Server
from tests.serve.conftest import found


def test_saved_files_are_those_of_explain(
    served: Server, settled: tuple[httpx.Client, str], explainer: Explainer, tmp_path: Path
) -> None:
    client, name = settled
    assert client.get(f"/case/{name}/saved/report.html").status_code == 404
    html = client.post(f"/case/{name}/save").json()["html"]
    assert html.count("<a ") == 5
    archive = zipfile.ZipFile(io.BytesIO(client.get(f"/case/{name}/saved/case.zip").content))
    archive.extractall(tmp_path)
    assert sorted(archive.namelist()) == [
        "explanation.json",
        "explanation.npz",
        "figure.png",
        "report.html",
    ]
    case = found(served, name)
    assert case.result is not None
    saved = load_explanation(tmp_path / "explanation")
    pixels, _ = case.network.test_image(1)
    mine = explainer.explain(pixels, players=8, budget=case.result.evaluations, source_budget=512)
    assert torch.allclose(saved.probabilities, mine.probabilities)
    assert saved.evaluations == mine.evaluations
    assert [one.prototype for one in saved.evidence] == [one.prototype for one in mine.evidence]
    side, theirs = saved.evidence[0].source_side, mine.evidence[0].source_side
    assert side is not None
    assert theirs is not None
    assert torch.allclose(side.regions.values, theirs.regions.values)
    mine.save(tmp_path / "mine")
    ours, theirs_json = (json.loads((tmp_path / f"{n}.json").read_text()) for n in ("explanation", "mine"))
    assert ours.keys() == theirs_json.keys()
    with np.load(tmp_path / "explanation.npz") as a, np.load(tmp_path / "mine.npz") as b:
        assert set(a.files) == set(b.files)
    report = client.get(f"/case/{name}/saved/report.html")
    assert report.headers["Content-Disposition"].startswith("attachment")
    assert client.get(f"/case/{name}/saved/..%2f..%2fx").status_code == 404
    assert list(served.folder.path.iterdir()) == []

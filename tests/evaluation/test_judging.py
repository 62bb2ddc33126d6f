"""The command, with what costly explainers need."""

from __future__ import annotations

import sys

import pandas as pd
import pytest

from protopfaith.cli import main

QUICK = ["--prototypes", "2", "--players", "8", "--steps", "10", "--budget", "256", "--truth-budget", "0"]


def protopfaith(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["protopfaith", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_limits_and_precision(run, tmp_path, monkeypatch, capsys) -> None:
    more = ["--explainers", "owen,random", "--limit", "owen=1", "--autocast", "bfloat16", "--checked", "1"]
    arguments = ["faithfulness", str(run.folder), "--out", str(tmp_path), "--device", "cpu", *QUICK, *more]
    assert protopfaith(monkeypatch, *arguments) == 0
    assert pd.read_csv(tmp_path / "explainers.csv")["n"].to_list() == [1, 2]
    assert "bfloat16" in (tmp_path / "settings.json").read_text()
    assert "owen (n=1)" in capsys.readouterr().out


@pytest.mark.parametrize(
    "test",
    [
        (["--limit", "dasp"], "such as dasp=20"),
        (["--limit", "dasp=few"], "such as dasp=20"),
        (["--limit", "dapp=2"], "dasp"),
        (["--autocast", "int8"], "use auto, off, bfloat16, float16"),
        (["--steps", "2"], "give at least 5"),
        (["--budget", "10"], "budget of 10 evaluations is too small"),
    ],
)
def test_misspelt_options_are_one_sentence(run, tmp_path, monkeypatch, capsys, test) -> None:
    wrong, told = test
    arguments = ["faithfulness", str(run.folder), "--out", str(tmp_path / "none"), *QUICK, *wrong]
    assert protopfaith(monkeypatch, *arguments) == 1
    assert told in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "none").exists()

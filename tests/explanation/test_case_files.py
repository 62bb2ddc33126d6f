from __future__ import annotations

import json
from pathlib import Path

import pytest

from protopfaith.errors import ProtoPFaithError
from protopfaith.explanation import Explanation, load_explanation
from protopfaith.explanation.case_files import check_figures, complete_case, write_case, write_cases_page
from protopfaith.show.report import render_report

FILES = {"explanation.json", "explanation.npz", "report.html"}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_case_is_its_data_its_report_and_the_figures_asked_for(
    explanation: Explanation, tmp_path: Path
) -> None:
    write_case(explanation, tmp_path / "case", ("svg", ".png"))
    assert contents(tmp_path / "case").keys() == {*FILES, "figure.svg", "figure.png"}
    assert (tmp_path / "case" / "report.html").read_text() == render_report(explanation)


def test_completing_writes_what_is_missing_and_nothing_else(explanation: Explanation, tmp_path: Path) -> None:
    write_case(explanation, tmp_path, ("svg",))
    whole = contents(tmp_path)
    (tmp_path / "report.html").unlink()
    (tmp_path / "figure.svg").write_text("mine")  # not ours to judge, as it is not cut
    complete_case(load_explanation(tmp_path / "explanation"), tmp_path, ("svg", "png"))
    after = contents(tmp_path)
    assert after.keys() == {*whole, "figure.png"}
    assert {name for name in whole if after[name] != whole[name]} == {"figure.svg"}


@pytest.mark.parametrize("kinds", [("png", "gift"), (3,)])
def test_a_format_that_figures_do_not_have_is_an_error(kinds: tuple[str, ...]) -> None:
    with pytest.raises(ProtoPFaithError):
        check_figures(kinds)


def test_the_page_lists_these_cases_first_then_those_that_are_there(
    explanation: Explanation, tmp_path: Path
) -> None:
    for name in ("a", "b", "c"):
        write_case(explanation, tmp_path / name, ())
    page = write_cases_page(tmp_path, [tmp_path / "c"], [("bad.png", "It is empty.")]).read_text()
    places = [page.index(f'"{name}/report.html"') for name in ("c", "a", "b")]
    assert places == sorted(places)
    assert "It is empty." in page
    assert json.loads((tmp_path / "a" / "explanation.json").read_text())  # read, not changed

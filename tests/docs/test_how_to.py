"""The examples of the how-to pages are whole: what they say to type works."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import protopfaith
from protopfaith.conversion import FORMATS
from protopfaith.data import DATASETS
from protopfaith.evaluation import EXPLAINERS
from protopfaith.moments import RULES
from protopfaith.network import ENCODERS, FAMILIES
from protopfaith.shapley import ESTIMATORS
from protopfaith.training import TRAINERS

IN_A_BROWSER = "explorer"  # whose steps are clicks: tests/serve tries them
FOLDER = Path(__file__).parents[2] / "docs" / "how-to"
PAGES = [page for page in sorted(FOLDER.glob("*.md")) if page.stem != IN_A_BROWSER]
REGISTRIES = (DATASETS, FORMATS, EXPLAINERS, RULES, ENCODERS, ESTIMATORS, FAMILIES, TRAINERS)
IN_THE_PACKAGE = {
    "data-set": "data",
    "encoder": "network/encoders",
    "estimator": "shapley/estimators",
    "explainer": "evaluation/explainers",
    "moment-rule": "moments/rules",
}
BLOCK = re.compile(r'^```python(?: title="(?P<file>[\w.]+)")?\n(?P<code>.*?)^```', re.DOTALL | re.MULTILINE)


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules can be imported; what they register is gone afterwards."""
    before = [dict(registry) for registry in REGISTRIES]
    modules = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PROTOPFAITH_CACHE", str(tmp_path / "cache"))
    yield tmp_path
    for registry, known in zip(REGISTRIES, before, strict=True):
        for name in registry.keys() - known.keys():
            del registry[name]
    for name in set(sys.modules) - modules:
        if getattr(sys.modules[name], "__file__", None) and name.startswith("my_"):
            del sys.modules[name]


def test_there_is_a_page_for_each_kind_of_extension() -> None:
    assert {page.stem for page in PAGES} >= {
        "estimator",
        "moment-rule",
        "encoder",
        "data-set",
        "explainer",
        "family",
        "report",
        "bring-your-network",
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_run_as_they_are(page: Path, workshop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = list(BLOCK.finditer(page.read_text(encoding="utf-8")))
    files = {block["file"]: block["code"] for block in blocks if block["file"]}
    for name, code in files.items():
        (workshop / name).write_text(code, encoding="utf-8")
    (workshop / "images").mkdir()
    monkeypatch.chdir(workshop / "images")  # what examples write has plain names
    namespace = {"folder": workshop / "images"}
    for block in blocks:
        if not block["file"]:
            exec(compile(block["code"], str(page), "exec"), namespace)
    assert all(name.removesuffix(".py") in sys.modules for name in files)


def test_the_examples_work_as_files_of_the_package(tmp_path: Path) -> None:
    package = Path(protopfaith.__file__).parent
    shutil.copytree(package, tmp_path / "protopfaith", ignore=shutil.ignore_patterns("__pycache__"))
    modules = []
    for page, folder in IN_THE_PACKAGE.items():
        for block in BLOCK.finditer((FOLDER / f"{page}.md").read_text(encoding="utf-8")):
            if block["file"]:
                (tmp_path / "protopfaith" / folder / block["file"]).write_text(
                    block["code"], encoding="utf-8"
                )
                modules.append(f"protopfaith.{folder}.{block['file']}".removesuffix(".py").replace("/", "."))
    code = (
        "import sys, protopfaith.evaluation; from protopfaith.data import DATASETS; "
        f"sys.exit(str(missing) if (missing := {set(modules)!r} - sys.modules.keys()) else 0)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)

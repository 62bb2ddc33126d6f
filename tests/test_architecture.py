"""Imports between packages point one way, the drawing of them in the documentation is as they are, and tests
lie where their modules do.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scripts import ROOT, load_script

drawing = load_script("draw_imports")  # it reads the imports from the source

BELOW = {
    "base": set(),
    "moments": {"base"},
    "shapley": {"base", "moments"},
    "network": {"base", "moments"},
    "data": {"base"},
    "training": {"base", "network", "data"},
    "conversion": {"base", "network", "data", "training"},
    "explanation": {"base", "network", "data", "training", "shapley"},
    "evaluation": {"base", "network", "data", "training", "shapley", "explanation"},
    "show": {"base", "network", "data", "training", "shapley", "explanation", "evaluation"},
    "serve": {"base", "network", "data", "training", "shapley", "explanation", "evaluation", "show"},
    "cli": {
        "base",
        "network",
        "data",
        "training",
        "conversion",
        "shapley",
        "explanation",
        "evaluation",
        "show",
        "serve",
    },
}
"""What the modules of each package may import at their top."""

SUGAR = {
    ("protopfaith.shapley.attribution", "show"),  # shown in a notebook
    ("protopfaith.explanation.explanation", "show"),  # .figure(), .report(), shown in a notebook
    ("protopfaith.explanation.function", "show"),  # .figure(), .report(), shown in a notebook
    ("protopfaith.explanation.catalog.catalog", "show"),  # .report()
    ("protopfaith.explanation.case_files", "show"),  # reports are written while others are computed
    ("protopfaith.explanation.cases", "show"),  # what is wrong with a figure or a DICOM file, before any work
    ("protopfaith.evaluation.measure", "show"),  # the page grows while explainers are judged
    ("protopfaith.evaluation.external_results", "show"),  # .save() writes its picture
    ("protopfaith.evaluation.external_findings", "show"),  # likewise
    ("protopfaith.evaluation.findings", "show"),  # the reliability picture
    ("protopfaith.evaluation.prediction", "show"),  # the confusion matrix
    ("protopfaith.evaluation.results", "show"),  # .frame()
}
"""Imports inside functions that point upward: results that know how to show themselves."""


def test_every_package_has_its_place() -> None:
    packages = {path.parent.name for path in drawing.SOURCE.glob("*/__init__.py")}
    assert packages | {"base"} <= BELOW.keys()


def test_what_may_be_imported_goes_one_way() -> None:
    for package, below in BELOW.items():
        assert all(package not in BELOW[other] for other in below)
        assert all(BELOW[other] <= below | {"moments"} for other in below)


@pytest.mark.parametrize("package", BELOW)
def test_imports_point_downward(package: str) -> None:
    allowed = BELOW[package] | {package}
    upward = [
        f"{found.importer}:{found.line} imports {found.imported}"
        for found in drawing.imports()
        if found.counts and found.packages[0] == package and found.packages[1] not in allowed
    ]
    assert upward == []


def test_imports_inside_functions_point_upward_only_for_sugar() -> None:
    upward = {(module, other) for module, other in drawing.lazy_imports() if other not in _reach(module)}
    assert upward == SUGAR


def _reach(module: str) -> set[str]:
    return BELOW[drawing.package_of(module)]


def test_the_drawing_is_up_to_date() -> None:
    script = ROOT / "scripts" / "draw_imports.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def mirror_of(module: Path) -> Path:
    """Where the tests of a module lie."""
    inside = module.relative_to(drawing.SOURCE)
    return ROOT / "tests" / inside.parent / f"test_{module.name}"


def test_every_module_has_its_tests() -> None:
    modules = [path for path in drawing.SOURCE.rglob("*.py") if not path.name.startswith("_")]
    assert ROOT / "src" / "protopfaith" / "shapley" / "game.py" in modules
    missing = sorted(
        str(mirror_of(path).relative_to(ROOT)) for path in modules if not mirror_of(path).is_file()
    )
    assert not missing, f"Modules without tests; write or move some to: {', '.join(missing)}."


def classes() -> dict[str, ast.ClassDef]:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in drawing.SOURCE.rglob("*.py")]
    found = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return {node.name: node for node in found}


def methods(owner: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in owner.body if isinstance(node, ast.FunctionDef)}


def assigned(method: ast.FunctionDef) -> set[str]:
    """The attributes of `self` that a method assigns."""
    statements = [node for node in ast.walk(method) if isinstance(node, ast.Assign | ast.AnnAssign)]
    targets = [
        one for node in statements for one in getattr(node, "targets", [getattr(node, "target", None)])
    ]
    inside = [node for target in targets for node in ast.walk(target) if isinstance(node, ast.Attribute)]
    return {node.attr for node in inside if isinstance(node.value, ast.Name) and node.value.id == "self"}


def born(owner: ast.ClassDef, known: dict[str, ast.ClassDef]) -> set[str]:
    """What an instance has once it is made: fields, and what `__init__` assigns, itself or by one call."""
    fields = {node.target for node in owner.body if isinstance(node, ast.AnnAssign)}
    names = {node.id for node in fields if isinstance(node, ast.Name)}
    names |= {
        name for node in owner.body if isinstance(node, ast.Assign) for name in map(ast.unparse, node.targets)
    }
    own = methods(owner)
    for maker in ("__init__", "__post_init__", "__setstate__"):
        if maker in own:
            names |= assigned(own[maker])
            calls = [node.func for node in ast.walk(own[maker]) if isinstance(node, ast.Call)]
            called = {node.attr for node in calls if isinstance(node, ast.Attribute)}
            names |= {name for method in called & own.keys() for name in assigned(own[method])}
    bases = [known[name] for name in map(ast.unparse, owner.bases) if name in known]
    return names.union(*(born(base, known) for base in bases))


def test_no_attribute_is_born_outside_of_init() -> None:
    known = classes()
    late = [
        f"{name}.{method}: {', '.join(sorted(missing))}"
        for name, owner in known.items()
        for method, node in methods(owner).items()
        if (missing := assigned(node) - born(owner, known))
    ]
    assert "Explainer" in known
    assert late == []

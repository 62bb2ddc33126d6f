"""What may be named on the command line, known before anything heavy is imported: a typo is answered at once.

Names of estimators, explainers and the like are read from the text of the files that register them, as
importing these takes seconds. Only where somebody brings modules of their own (`--import`), which have
imported everything, the registries themselves are asked.
"""

from __future__ import annotations

import ast
import ctypes
import re
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from protopfaith.arguments import shown
from protopfaith.encoder_names import check_encoder_name, check_weights_file, is_published
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import existing_folder, is_file, is_folder
from protopfaith.registry import Registry, extensions, nothing_named
from protopfaith.specs import DEFAULT, DEFAULT_METHOD, baseline_numbers, check_option_names, no_gpu

if TYPE_CHECKING:
    from protopfaith.training import Recipe

PACKAGE = Path(__file__).parent.parent
PLACES = {  # of each registry: what it holds, its module, and the folder or file where that is registered
    "ACTIVATIONS": ("activation", "protopfaith.network.layers", "network"),
    "BASELINES": ("baseline", "protopfaith.shapley", "shapley/baselines.py"),
    "DATASETS": ("data set", "protopfaith.data.known", "data"),
    "ENCODERS": ("encoder", "protopfaith.network.encoders", "network/encoders"),
    "ESTIMATORS": ("estimator", "protopfaith.shapley", "shapley/estimators"),
    "EXPLAINERS": ("explainer", "protopfaith.evaluation", "evaluation/explainers"),
    "FAMILIES": ("family of networks", "protopfaith.network", "network"),
    "FORMATS": ("format", "protopfaith.conversion.formats", "conversion"),
    "SIMILARITIES": ("similarity", "protopfaith.network.layers", "network"),
}
DEVICES = ("auto", "cpu", "cuda", "hpu", "ipu", "mps", "mtia", "xla", "xpu")
ACCELERATORS = ("auto", "cpu", "cuda", "gpu", "mps", "tpu")  # as Fabric names them
SPLITS = ("train", "validation", "test")
NEEDS_ROOT = "existing_folder(root"  # in the files of data sets that lie in a folder of the user's


def registered(registry: str) -> list[str]:
    """All names in a registry; those of our own files where it was not imported yet."""
    _, module, place = PLACES[registry]
    if extensions():
        import_module(module)
    there = getattr(sys.modules.get(module), registry, None)
    return _written(registry, PACKAGE / place) if there is None else sorted(there)


@lru_cache
def _written(registry: str, place: Path) -> list[str]:
    files = [place] if place.is_file() else sorted(place.rglob("*.py"))
    pattern = re.compile(rf'{registry}\.register\(\s*"([^"]+)"')
    return sorted(name for file in files for name in pattern.findall(file.read_text("utf-8")))


def check_names(registry: str, names: Iterable[str], *more: str) -> None:
    """Raises if one of the names is neither registered nor one `more` that is known."""
    known = [*registered(registry), *more]
    for name in names:
        if name not in known:
            raise Registry[object](PLACES[registry][0]).unknown(name, known)


def one_of(registry: str) -> Callable[[str | None], str | None]:
    """What Typer calls for an option that names something registered; None is no name."""

    def callback(name: str | None) -> str | None:
        check_names(registry, [] if name is None else [name])
        return name

    return callback


def check_split(name: str) -> str:
    """Raises if there is no such split."""
    if name not in SPLITS:
        raise nothing_named("split", name, SPLITS)
    return name


def check_device(name: str) -> str:
    """Raises if there is no such kind of device, or certainly none on this machine; the rest is found out
    when it is used."""
    kind, colon, number = name.partition(":")
    known = kind in DEVICES and (not colon or number.isdecimal())
    if not extensions() and (not known or (kind == "cuda" and not _may_have_gpu())):
        raise ProtoPFaithError(
            f"The device {shown(name)} is not available on this machine; use auto, or cpu."
        )
    return name


def _may_have_gpu() -> bool:
    """Whether a driver of NVIDIA or AMD is there, without which torch finds no GPU. Asked on Linux alone."""
    if sys.platform != "linux" or Path("/dev/kfd").exists():
        return True
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def check_estimator(name: str) -> str:
    """Raises if there is no such estimator."""
    check_names("ESTIMATORS", [name], DEFAULT)
    return name


def check_estimator_options(estimator: str, names: Iterable[str]) -> None:
    """Raises if an estimator of ours has no option of a name."""
    name = DEFAULT_METHOD if estimator == "default" else estimator
    parameters = _keywords("ESTIMATORS", name)
    if parameters is not None and not extensions():
        check_option_names(name, names, parameters)


@lru_cache
def _keywords(registry: str, name: str) -> list[str] | None:
    """The keyword parameters of a registered function, as its file says; None where that is not plain."""
    for file in (PACKAGE / PLACES[registry][2]).rglob("*.py"):
        if name not in _written(registry, file):
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name == name and node.args.kwarg is None:
                return [argument.arg for argument in node.args.kwonlyargs]
    return None


def check_explainers(names: str | None) -> str | None:
    """Raises if one of the names, with commas between, is none. Whether there are any is asked later."""
    check_names("EXPLAINERS", filter(None, (name.strip() for name in (names or "").split(","))))
    return names


def check_baseline(spec: str | None) -> str | None:
    """Raises if there is no such baseline, or no numbers follow its colon; which ones is for it to judge."""
    if spec is not None:
        check_names("BASELINES", [spec.partition(":")[0]])
        baseline_numbers(spec)
    return spec


def check_recipe_names(recipe: Recipe) -> None:
    """Raises if a recipe names a data set, a network or a part of one that there is not."""
    model = recipe.model
    for registry, name in (
        ("DATASETS", recipe.data.name),
        ("FAMILIES", model.family),
        ("ACTIVATIONS", model.activation),
        ("SIMILARITIES", model.similarity),
    ):
        check_names(registry, [name])
    if model.weights is not None and not is_published(model.weights):
        check_weights_file(Path(model.weights))
    for encoder in (model.encoder, model.otherwise):
        if encoder is not None and not extensions():  # which may add to torchvision and timm as well
            check_encoder_name(encoder, registered("ENCODERS"))
    check_dataset_root(recipe.data.name, recipe.data.root)
    if recipe.compute.accelerator not in ACCELERATORS and not extensions():
        raise nothing_named("accelerator", recipe.compute.accelerator, ACCELERATORS)
    if recipe.compute.accelerator in ("cuda", "gpu") and not _may_have_gpu():
        raise no_gpu(recipe.compute.accelerator)


def check_dataset_root(name: str, root: Path | str | None) -> None:
    """Raises if there is no such data set, or its folder is not said, not there, or another one."""
    check_names("DATASETS", [name])
    if needs_root(name):
        folder = existing_folder(None if root is None else Path(root).expanduser(), name)
        from protopfaith.data.roots import CHECKS

        if name in CHECKS:
            CHECKS[name](folder)


def needs_root(name: str) -> bool:
    """Whether a data set lies in a folder of the user's, as the file says that registers it."""
    files = (PACKAGE / PLACES["DATASETS"][2]).rglob("*.py")
    return any(name in _written("DATASETS", file) and NEEDS_ROOT in file.read_text("utf-8") for file in files)


def check_elsewhere(data: str | None) -> str | None:
    """Raises if images from elsewhere are neither a data set by name nor a folder of classes nor a file."""
    if not data or not data.strip() or data.startswith("~"):
        return data
    if data in registered("DATASETS"):
        return data
    if is_folder(Path(data)):
        from protopfaith.data.roots import external_folders

        external_folders(existing_folder(Path(data), "folder"))
    elif not is_file(Path(data)):
        raise nothing_named("data set, folder or CSV file", data, registered("DATASETS"))
    return data

"""Names of encoders, known without importing the libraries that have them: a typo is answered at once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from protopfaith.arguments import named
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_file
from protopfaith.registry import Registry

ALIASES = {
    "resnext50": "resnext50_32x4d",
    "wide_resnet50": "wide_resnet50_2",
    "wideresnet50": "wide_resnet50_2",
}
TIMM = "timm:"  # begins the names of timm's networks
_REGISTERED = re.compile(r"^@register_model\b.*?^def (\w+)", re.DOTALL | re.MULTILINE)


def check_encoder_name(name: str, ours: Iterable[str]) -> None:
    """Raises if neither we nor torchvision nor timm have an encoder of that name; whether a layer can be cut
    at (`NAME@LAYER`) is found out when it is built.

    Args:
        name: as in a recipe
        ours: the names of those that are registered here
    """
    if name.startswith(TIMM):
        _check_timm_name(name.removeprefix(TIMM))
        return
    ours, published = list(ours), torchvision_names_in_files()
    # Where torchvision's files look otherwise than today, nothing is known before it is imported.
    if published and name not in {*ours, *ALIASES} and name.partition("@")[0] not in published:
        raise unknown_encoder(name, ours)


def unknown_encoder(name: str, ours: Iterable[str]) -> ProtoPFaithError:
    """What to raise for a name of no encoder."""
    elsewhere = ", neither here nor in torchvision (timm's are 'timm:NAME')"
    return Registry[object]("encoder").unknown(name, [*ours, *ALIASES], elsewhere)


def is_published(weights: str | Path) -> bool:
    """Whether weights are a name under which they are published, and no file."""
    return isinstance(weights, str) and (weights == "imagenet" or weights.startswith("IMAGENET1K_"))


def check_weights_file(path: Path) -> None:
    """Raises if there is no file of weights."""
    if not is_file(path):
        raise ProtoPFaithError(f"There is no file of weights at {named(path)[:300]}: check the path.")


def timm_missing(name: str) -> ProtoPFaithError:
    """What to raise where timm is not installed."""
    return ProtoPFaithError(
        f"The encoder 'timm:{name}' needs timm: install it with pip install 'protopfaith[timm]'."
    )


def unknown_to_timm(name: str) -> ProtoPFaithError:
    """What to raise for a name of no network of timm."""
    return ProtoPFaithError(f"timm has no model named {name!r}: timm.list_models() names them.")


def torchvision_names_in_files() -> set[str]:
    """Torchvision's classification networks, as its files register them."""
    return {name for text in _model_files("torchvision") for name in _REGISTERED.findall(text)}


def _check_timm_name(name: str) -> None:
    if find_spec("timm") is None:
        raise timm_missing(name)
    # Some have old names, registered in other ways: a name that is written nowhere is certainly none.
    word = re.compile(rf"\b{re.escape(name.partition('.')[0])}\b")
    if not any(word.search(text) for text in _model_files("timm")):
        raise unknown_to_timm(name)


@cache
def _model_files(library: str) -> list[str]:
    """The texts of the files in which a library has its networks."""
    spec = find_spec(library)
    folders = [] if spec is None else spec.submodule_search_locations or []
    return [path.read_text("utf-8") for one in folders for path in sorted(Path(one, "models").glob("*.py"))]

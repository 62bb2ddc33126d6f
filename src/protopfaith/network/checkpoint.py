"""Trained networks as files: safetensors with JSON in the header, so that loading executes no code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from protopfaith.annotations import check_arguments
from protopfaith.arguments import instance, shown
from protopfaith.devices import choose_device
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import check_readable, is_file, reason
from protopfaith.network.contract import FAMILIES, PrototypeSource
from protopfaith.network.encoders.adapt import differences
from protopfaith.network.model import ProtoPNet
from protopfaith.network.patches import PatchNetwork
from protopfaith.network.unfilled import Unfilled
from protopfaith.tensorfile import TensorFileError, read_header, read_tensors, write_tensors

FORMAT = 1
HEADER = "protopfaith"
ARCHITECTURE: dict[str, Any] = {
    "family": str,
    "encoder": (str, type(None)),
    "classes": (list, int),
    "prototype_channels": int,
    "in_channels": int,
    "activation": str,
    "layers": list,
}
"""The keys that a header may have for the constructor of any family, and their types."""
LARGEST_MAP = 100_000


def save(model: PatchNetwork, path: Path | str, metadata: dict[str, Any] | None = None) -> None:
    """Writes `model` to one .safetensors file, whole or not at all.

    `metadata` is anything that JSON holds (the preprocessing, say); `load` gives it back.

    Args:
        model: the network
        path: a .safetensors file
        metadata: anything that JSON holds

    >>> from tempfile import TemporaryDirectory
    >>> model = ProtoPNet("small", ["cat", "dog"], prototypes_per_class=1, prototype_channels=4)
    >>> with TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.safetensors", {"epoch": 3})
    """
    check_arguments(save, locals())
    instance(model, PatchNetwork, "What is saved", "a network of one of our families, such as a ProtoPNet")
    instance(path, (str, Path), "Where to save", "the path of a .safetensors file")
    header = {
        "format": FORMAT,
        "architecture": model.config,
        "encoder_class": f"{type(model.encoder).__module__}.{type(model.encoder).__qualname__}",
        "sources": [source and source.to_dict() for source in model.sources],
        "metadata": metadata or {},
    }
    try:
        write_tensors(path, HEADER, header, model.state_dict())
    except (TypeError, ValueError) as error:
        raise ProtoPFaithError(
            f"The metadata for {path} cannot be written as JSON ({error}); use numbers, texts, lists, dicts."
        ) from error


def load(
    path: Path | str, *, encoder: nn.Module | None = None, device: torch.device | str = "cpu"
) -> tuple[PatchNetwork, dict[str, Any]]:
    """The network in `path`, in eval mode, and the metadata it was saved with.

    A network whose encoder was the user's own module needs that module again, as `encoder`.

    Args:
        path: a file that `save` wrote
        encoder: the module, where the network's encoder was the user's own
        device: where to put the network

    >>> from tempfile import TemporaryDirectory
    >>> model = ProtoPNet("small", ["cat", "dog"], prototypes_per_class=1, prototype_channels=4)
    >>> with TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.safetensors", {"epoch": 3})
    ...     load(f"{folder}/model.safetensors")[0].class_names
    ('cat', 'dog')
    """
    check_arguments(load, locals())
    header, tensors = _read(path)
    family = _family(path, header)
    config = _architecture(path, header, tensors, family)
    name = config.pop("encoder", None)
    own = name if encoder is None else encoder
    if own is None:
        raise ProtoPFaithError(
            f"The encoder of {path} was a module of its author's ({header.get('encoder_class')}), and "
            "loading runs no code from a file: build that module and pass it as load(path, encoder=module)."
        )
    try:
        model = _built(family, own, config, tensors)
    except (ProtoPFaithError, TypeError, ValueError, RuntimeError, MemoryError) as error:
        if str(path) in str(error):
            raise
        raise ProtoPFaithError(
            f"The header of {path} describes no known network: {reason(error).rstrip('.')}; use another copy "
            "of it."
        ) from error
    _fill(model, path, header, tensors)
    return model.to(choose_device(device)).eval(), header["metadata"]


def read_state(path: Path | str) -> tuple[dict[str, Tensor], list[Any]]:
    """The tensors of a checkpoint, and its sources as JSON has them."""
    header, tensors = _read(path)
    return tensors, header["sources"]


def restore(model: PatchNetwork, tensors: dict[str, Tensor], sources: list[Any], path: Path | str) -> None:
    """Fills a network with what `read_state` gave; raises if it is another network's."""
    _fill(model, path, {"sources": sources}, tensors)


def read_sources(values: Any, count: int, path: str) -> list[PrototypeSource | None]:
    """The sources of `count` prototypes, as JSON has them; raises if they are anything else."""
    kinds = {"image": str, "row": int, "column": int, "sha256": str, "exact": bool}
    right = isinstance(values, list) and len(values) == count
    for value in values if right else ():
        right = right and (
            value is None
            or (
                isinstance(value, dict)
                and kinds.keys() - {"exact"} <= value.keys() <= kinds.keys()
                and all(isinstance(value[key], kinds[key]) for key in value)
                and 0 <= value["row"] < LARGEST_MAP
                and 0 <= value["column"] < LARGEST_MAP
            )
        )
    if not right:
        raise ProtoPFaithError(
            f"The sources of the prototypes in {path} are not what they should be (image, row, column, "
            "sha256 of each); use another copy of the checkpoint."
        )
    return [value and PrototypeSource(**value) for value in values]


def read_metadata(path: Path | str) -> dict[str, Any]:
    """The metadata in `path` alone: no tensor is read and no network is built.

    Args:
        path: a file that `save` wrote

    >>> from tempfile import TemporaryDirectory
    >>> model = ProtoPNet("small", ["cat", "dog"], prototypes_per_class=1, prototype_channels=4)
    >>> with TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.safetensors", {"epoch": 3})
    ...     read_metadata(f"{folder}/model.safetensors")
    {'epoch': 3}
    """
    return _read(path, with_tensors=False)[0]["metadata"]


def _family(path: Path | str, header: dict[str, Any]) -> type[PatchNetwork]:
    """The class that the header names; checkpoints of earlier versions name none."""
    name = header["architecture"].get("family", ProtoPNet.family)
    known = FAMILIES[name] if isinstance(name, str) and name in FAMILIES else None
    if not isinstance(known, type) or not issubclass(known, PatchNetwork):
        raise ProtoPFaithError(
            f"{path} holds a network of the family {shown(name)}, which this version of protopfaith does not "
            "know; name the module that registers it with --import, or install a newer version."
        )
    return known


def _architecture(
    path: Path | str, header: dict[str, Any], tensors: dict[str, Tensor], family: type[PatchNetwork]
) -> dict[str, Any]:
    """What the constructor gets: known keys alone, of the right kind, in agreement with the tensors. Never
    weights: opening a checkpoint neither reads another file nor downloads one."""
    config, allowed = dict(header["architecture"]), {**ARCHITECTURE, **family.header}
    for key, kind in allowed.items():
        if (key in config and not isinstance(config[key], kind)) or isinstance(config.get(key), bool):
            raise ProtoPFaithError(
                f"The header of {path} describes no known network: its {key} is {shown(config[key])}; use "
                "another copy of it."
            )
    wrong = sorted(set(config) - set(allowed)) or sorted({"classes", "prototype_channels"} - set(config))
    if wrong:
        raise ProtoPFaithError(
            f"The header of {path} describes no known network: {shown(wrong[0])} should not be there, or is "
            "missing; use another copy of it."
        )
    if isinstance(config["classes"], int) or not {"prototypes", "prototype_classes"} <= set(tensors):
        raise ProtoPFaithError(
            f"The header of {path} describes no known network: it lacks the names of its classes, or its "
            "prototypes; use another copy of it."
        )
    config.pop("family", None)
    return config


def _built(
    family: type[PatchNetwork],
    encoder: str | nn.Module,
    config: dict[str, Any],
    tensors: dict[str, Tensor],
) -> PatchNetwork:
    """The network without its weights, whatever torch's default dtype; the caller's random numbers stay."""
    numbers = sum(part.numel() for part in tensors.values())
    with torch.random.fork_rng(devices=[]), Unfilled(numbers):
        return family(encoder, **config).float()


def _check_same(path: Path | str, tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    problems = differences(tensors, expected)
    if problems:
        raise ProtoPFaithError(
            f"{path} is a checkpoint of another architecture than its network: {problems}; load it with the "
            "encoder that it was trained with."
        )


def _fill(model: PatchNetwork, path: Path | str, header: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    _check_same(path, tensors, model.state_dict())
    owners = tensors["prototype_classes"]
    if not torch.equal(owners.cpu().long(), model.prototype_classes.cpu()):  # the model may be on a GPU
        raise ProtoPFaithError(
            f"{path} gives its prototypes to classes that it does not have; use another copy of the "
            "checkpoint."
        )
    model.load_state_dict(tensors)
    _check_numbers(model, path, tensors)
    model.sources = read_sources(header["sources"], len(model.prototypes), str(path))


def _check_numbers(model: PatchNetwork, path: Path | str, tensors: dict[str, Tensor]) -> None:
    """Raises for weights that are no numbers, or of another kind: whole numbers for a layer's, say."""
    weights = {name for name, _ in model.named_parameters()}
    for name, part in model.state_dict().items():
        if name not in tensors:  # counters of batch norm, which older files lack
            continue
        same = (
            tensors[name].is_floating_point() == part.is_floating_point() and not tensors[name].is_complex()
        )
        if not same or part.isnan().any() or (name in weights and part.isinf().any()):
            raise ProtoPFaithError(
                f"{name} in {path} has numbers that are not finite, or of another kind than the network's; "
                "use another copy of the checkpoint, or train anew."
            )


def _read(path: Path | str, *, with_tensors: bool = True) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Header and tensors of a checkpoint of ours."""
    if not is_file(Path(instance(path, (str, Path), "A checkpoint", "the path of a file"))):
        raise ProtoPFaithError(f"There is no checkpoint at {path}: check the path, or train a network first.")
    try:
        header, tensors = read_tensors(path, HEADER) if with_tensors else (read_header(path, HEADER), {})
    except TensorFileError as error:
        check_readable(path)
        raise ProtoPFaithError(
            f"{path} is cut short or no safetensors file ({error}): use another copy of the checkpoint."
        ) from error
    return _checked(path, header), tensors


def _checked(path: Path | str, header: Any) -> dict[str, Any]:
    """The header, if it is one of ours."""
    if not isinstance(header, dict) or "format" not in header:
        raise ProtoPFaithError(
            f"{path} is a safetensors file, but no checkpoint of protopfaith: its header lacks our "
            "description; as weights of an encoder it may be passed as weights=path."
        )
    if not isinstance(header["format"], int) or not 1 <= header["format"] <= FORMAT:
        raise ProtoPFaithError(
            f"{path} has format {shown(header['format'])}, but this version of protopfaith reads up to "
            f"{FORMAT}: install a newer protopfaith."
        )
    parts = {"architecture": dict, "sources": list, "metadata": dict}
    if not all(isinstance(header.get(key), kind) for key, kind in parts.items()):
        raise ProtoPFaithError(
            f"The header of {path} describes no known network: it should have {', '.join(parts)}."
        )
    return header

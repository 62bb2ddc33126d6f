"""Directories of CaBRNet 1.2: model_arch.yml, model_state.pth, and where there are dataset.yml and
projection_info.csv."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from protopfaith.arguments import shown
from protopfaith.conversion.backbones import encoder_differences, in_channels
from protopfaith.conversion.cabrnet_tree import CLASSIFIER, check_similarity, read_cabrnet_tree
from protopfaith.conversion.foreign import (
    ForeignNetwork,
    SourceHint,
    check_convolution,
    check_owners,
    plain_numbers,
)
from protopfaith.conversion.formats import FORMATS, Asked, Format
from protopfaith.conversion.unpickling import read_foreign
from protopfaith.data import Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_file, read_plain_text
from protopfaith.network import ENCODERS, NO_CLASS
from protopfaith.yamlfile import parse_yaml

ARCHITECTURE, STATE, DATA, PROJECTION = (
    "model_arch.yml",
    "model_state.pth",
    "dataset.yml",
    "projection_info.csv",
)
EPSILON = 1e-4
SIZE = 224
LAYERS = {"ReLU": "relu", "Sigmoid": "sigmoid"}
SIMILARITIES = ("ProtoPNetSimilarity", "LegacyProtoPNetSimilarity")
"""The same formula, computed in two ways."""
LEFT_OUT = ("ToTensor", "ConvertImageDtype", "convert_to_rgb", "Grayscale")


def is_cabrnet(path: Path) -> bool:
    """Whether a path is such a directory."""
    return is_file(path / ARCHITECTURE)


def read_cabrnet(path: Path, asked: Asked) -> ForeignNetwork:
    """Understands a directory that CaBRNet saved.

    Args:
        path: the directory
        asked: what the caller knows better

    Raises:
        ProtoPFaithError: if it is another kind of network, in one sentence
    """
    architecture = _mapping(path / ARCHITECTURE, "the model_arch.yml of CaBRNet")
    kind = _kind(architecture, path)
    if asked.encoder is not None:
        raise ProtoPFaithError(f"The encoder of {path} is said by its model_arch.yml; leave --encoder out.")
    content = _content(path / STATE)
    state = _tensors(content, path / STATE)
    encoder, add_on = _extractor(_section(architecture, "extractor", path), path)
    encoder_state = _part(state, "extractor.convnet.")
    encoder = _checked_encoder(encoder, encoder_state, path)
    layers, convolutions = _add_on(add_on, _part(state, "extractor.add_on."), path)
    if kind == CLASSIFIER:
        check_similarity(architecture, asked, path)
        decides, kept = _tree(content, state, path)
    else:
        decides, kept = _net(state, _epsilon(architecture, asked, path), path)
    preprocessing, notes = _preprocessing(path / DATA, asked, in_channels(encoder_state))
    hints = _hints(path / PROJECTION)
    unused = len(state["classifier.prototypes"]) - len(kept)
    if unused:
        notes = (*notes, f"{unused} disabled prototypes are left out.")
    return ForeignNetwork(
        "CaBRNet",
        encoder,
        encoder_state,
        layers,
        convolutions,
        preprocessing=preprocessing,
        hints={place: hints[old] for place, old in enumerate(kept) if old in hints},
        notes=notes,
        **decides,
    )


def _net(state: Mapping[str, Tensor], epsilon: float, path: Path) -> tuple[dict[str, Any], list[int]]:
    """What a ProtoPNet decides by, and the numbers of its prototypes."""
    prototypes, weights, owners, kept = _classifier(state, path)
    decides = {
        "prototypes": prototypes[kept],
        "owners": owners[kept],
        "weights": weights[:, kept],
        "similarity": "log",
        "epsilon": epsilon,
    }
    return decides, kept.tolist()


def _tree(
    content: Mapping[str, Any], state: Mapping[str, Tensor], path: Path
) -> tuple[dict[str, Any], list[int]]:
    """What a ProtoTree decides by, and the numbers of its nodes' prototypes."""
    tree = read_cabrnet_tree(content.get("_extra_state"), state, path / STATE)
    prototypes = _flat_prototypes(state.get("classifier.prototypes"), path)
    if not all(0 <= number < len(prototypes) for number in tree.prototypes):
        raise ProtoPFaithError(
            f"The tree of {path} has nodes with prototypes that are not there; use another copy."
        )
    decides = {
        "prototypes": prototypes[tree.prototypes],
        "owners": torch.full((len(tree.prototypes),), NO_CLASS),
        "weights": torch.zeros(tree.leaves.shape[1], 0),
        "similarity": "exponential",
        "epsilon": None,
        "branches": tree.branches,
        "leaves": tree.leaves,
    }
    return decides, tree.prototypes


FORMATS.register("cabrnet")(
    Format("a directory of CaBRNet 1.2 with its model_arch.yml", is_cabrnet, read_cabrnet)
)


def _mapping(path: Path, expected: str) -> dict[str, Any]:
    values = parse_yaml(read_plain_text(path, expected), str(path))
    if not isinstance(values, dict):
        raise ProtoPFaithError(f"{path} must hold keys and values; give {expected}.")
    return values


def _section(values: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
    section = values.get(name)
    if not isinstance(section, dict):
        raise ProtoPFaithError(f"{path / ARCHITECTURE} has no section {name!r}; use another copy of it.")
    return section


def _kind(architecture: Mapping[str, Any], path: Path) -> str:
    name = _section(architecture, "classifier", path).get("name")
    if name not in ("ProtoPNetClassifier", CLASSIFIER):
        raise ProtoPFaithError(
            f"{path} holds a network with the classifier {shown(name)}; of CaBRNet's networks only ProtoPNet "
            "and ProtoTree can be converted."
        )
    return str(name)


def _content(path: Path) -> dict[Any, Any]:
    content = read_foreign(path)
    if not isinstance(content, dict):
        raise ProtoPFaithError(f"{path} holds no state dict; give a directory that CaBRNet saved.")
    return content


def _tensors(content: Mapping[Any, Any], path: Path) -> dict[str, Tensor]:
    found = {str(key): value for key, value in content.items() if isinstance(value, Tensor)}
    return plain_numbers(found, path)


def _part(state: Mapping[str, Tensor], start: str) -> dict[str, Tensor]:
    return {key.removeprefix(start): value for key, value in state.items() if key.startswith(start)}


def _extractor(extractor: Mapping[str, Any], path: Path) -> tuple[str, dict[str, Any]]:
    """The name of the encoder with the layer that it is cut at, and the description of Z."""
    backbone = _section(extractor, "backbone", path)
    pipelines = [key for key in extractor if key not in ("backbone", "add_on")]
    if len(pipelines) > 1 or backbone.get("postprocess") or backbone.get("params"):
        raise ProtoPFaithError(
            f"The extractor of {path} has several pipelines, or a backbone that was changed (params, "
            "postprocess); only torchvision's networks as they are can be converted."
        )
    if backbone.get("layer") or not pipelines:
        layer, add_on = backbone.get("layer"), extractor.get("add_on")
    else:
        pipeline = _section(extractor, pipelines[0], path)
        layer, add_on = pipeline.get("source_layer"), pipeline.get("add_on")
    return f"{str(backbone.get('arch')).lower()}@{layer}", add_on if isinstance(add_on, dict) else {}


def _checked_encoder(name: str, state: Mapping[str, Tensor], path: Path) -> str:
    """The encoder, without the layer where that is its last one."""
    whole = name.partition("@")[0]
    if name not in ENCODERS:
        raise ProtoPFaithError(
            f"The backbone of {path} is {shown(name)}, and there is no such layer on the way to the last "
            "feature map of a network of torchvision; name one in model_arch.yml."
        )
    problems = encoder_differences(name, state)
    if problems:
        raise ProtoPFaithError(
            f"The tensors in {path / STATE} do not fit the backbone {name} of model_arch.yml: {problems}; "
            "use another copy of them."
        )
    return whole if _is_whole(name, whole) else name


def _is_whole(name: str, whole: str) -> bool:
    with torch.device("meta"):
        cut, full = (str(ENCODERS[one](3, None)) for one in (name, whole))
    return cut == full


def _add_on(
    described: Mapping[str, Any], state: Mapping[str, Tensor], path: Path
) -> tuple[list[int | str], list[tuple[Tensor, Tensor]]]:
    layers: list[int | str] = []
    convolutions = []
    for name, layer in described.items():
        if name == "init_mode":
            continue
        kind = layer.get("type") if isinstance(layer, dict) else layer
        if isinstance(kind, str) and kind in LAYERS:
            layers.append(LAYERS[kind])
        elif kind == "Conv2d" and f"{name}.weight" in state:
            weight = state[f"{name}.weight"]
            convolutions.append(check_convolution(weight, state.get(f"{name}.bias"), path))
            layers.append(len(weight))
        else:
            raise ProtoPFaithError(
                f"The add-on layer {name!r} of {path} is {shown(kind)}; 1 x 1 convolutions, ReLU and Sigmoid "
                "can be converted."
            )
    return layers, convolutions


def _classifier(state: Mapping[str, Tensor], path: Path) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Prototypes, weights, owners, and which prototypes are kept: pruning may have disabled some."""
    part = _part(state, "classifier.")
    wanted = ("prototypes", "last_layer.weight", "proto_class_map")
    if any(name not in part for name in wanted):
        raise ProtoPFaithError(
            f"{path / STATE} lacks classifier.{next(name for name in wanted if name not in part)}; use "
            "another copy of it."
        )
    prototypes, weights, membership = (part[name] for name in wanted)
    prototypes = _flat_prototypes(prototypes, path)
    count = len(prototypes)
    if weights.dim() != 2 or weights.shape[1] != count or membership.shape != weights.T.shape:
        raise ProtoPFaithError(
            f"The last layer in {path} does not fit its {count} prototypes; use another copy."
        )
    belongs = membership != 0
    if bool((belongs.sum(1) > 1).any()):
        raise ProtoPFaithError(
            f"The prototypes of {path} belong to several classes at once; only those of one class can be "
            "converted."
        )
    kept = torch.where(belongs.any(1))[0]
    owners = belongs.float().argmax(1)  # of a bool there is no argmax
    check_owners(owners[kept], len(weights), path)
    return prototypes, weights, owners, kept


def _flat_prototypes(prototypes: Tensor | None, path: Path) -> Tensor:
    """(P, D); raises if they are not there, or larger than one position."""
    if prototypes is None:
        raise ProtoPFaithError(f"{path / STATE} lacks classifier.prototypes; use another copy of it.")
    if prototypes.dim() != 4 or prototypes.shape[2:] != (1, 1):
        raise ProtoPFaithError(
            f"The prototypes in {path} have the shape {shown(tuple(prototypes.shape))}, and only P x D x 1 x "
            "1 can be converted."
        )
    return prototypes.flatten(1)


def _epsilon(architecture: Mapping[str, Any], asked: Asked, path: Path) -> float:
    """Of the similarity; a missing section is the legacy one, as in CaBRNet."""
    described = architecture.get("similarity")
    described = described if isinstance(described, dict) else {"name": "LegacyProtoPNetSimilarity"}
    if described.get("name") not in SIMILARITIES:
        raise ProtoPFaithError(
            f"The similarity of {path} is {shown(described.get('name'))}; {' and '.join(SIMILARITIES)} can "
            "be converted."
        )
    if asked.similarity not in (None, "log"):
        raise ProtoPFaithError(
            f"The similarity of {path} is log, as its model_arch.yml says; leave out another."
        )
    params = described.get("params")
    said = params.get("stability_factor", EPSILON) if isinstance(params, dict) else EPSILON
    epsilon = said if asked.epsilon is None else asked.epsilon
    if not isinstance(epsilon, int | float):
        raise ProtoPFaithError(
            f"The stability_factor of {path} is {shown(epsilon)} and no number; correct it."
        )
    return float(epsilon)


def _preprocessing(path: Path, asked: Asked, channels: int) -> tuple[Preprocessing, tuple[str, ...]]:
    """As dataset.yml says for test images; ImageNet's statistics where it says nothing."""
    side = asked.size or SIZE
    gray = Preprocessing((side, side), 1, (0.0,), (1.0,))
    usual = gray if channels == 1 else Preprocessing((side, side))
    if not is_file(path):
        return usual, (
            f"There is no {DATA}; images of {usual.size[0]} pixels and ImageNet's colors are assumed.",
        )
    sets = _mapping(path, "the dataset.yml of CaBRNet")
    chosen: dict[str, Any] = next(
        (sets[name] for name in ("test_set", "projection_set") if isinstance(sets.get(name), dict)), {}
    )
    params = chosen.get("params")
    size, mean, std, notes = usual.size, usual.mean, usual.std, []
    for step in _steps(params.get("transform") if isinstance(params, dict) else None):
        kind, values = step.get("type"), step.get("params") or {}
        if not isinstance(values, dict):
            raise ProtoPFaithError(
                f"The params of {shown(kind)} in {path} are {shown(values)}; write keys and values there."
            )
        if kind == "Resize":
            size = values.get("size", size)
            if isinstance(size, int):
                notes.append(
                    "Images are resized to a square; CaBRNet's Resize of one number kept their aspect."
                )
        elif kind == "Normalize":
            mean, std = values.get("mean", mean), values.get("std", std)
        elif kind not in LEFT_OUT:
            notes.append(f"The transform {shown(kind)} of {DATA} is left out.")
    try:
        return Preprocessing(asked.size or size, channels, mean, std), tuple(notes)  # type: ignore[arg-type]
    except ProtoPFaithError as error:
        raise ProtoPFaithError(f"The transforms in {path} cannot be repeated: {error}") from error


def _steps(transform: Any) -> Iterator[dict[str, Any]]:
    """The single transforms of a nested description, in their order."""
    if isinstance(transform, dict) and "type" in transform:
        if "transforms" in transform:
            yield from _steps(transform["transforms"])
        else:
            yield transform
    elif isinstance(transform, (dict, list)):
        for part in transform.values() if isinstance(transform, dict) else transform:
            yield from _steps(part)


def _hints(path: Path) -> dict[int, SourceHint]:
    if not is_file(path):
        return {}
    rows = csv.DictReader(io.StringIO(read_plain_text(path, "the projection_info.csv of CaBRNet")))
    try:
        if "proto_idx" not in (rows.fieldnames or ()):
            raise KeyError
        found = {
            int(row["proto_idx"]): SourceHint(int(row["img_idx"]), int(row["h"]), int(row["w"]))
            for row in rows
        }
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise ProtoPFaithError(
            f"{path} should have the columns proto_idx, img_idx, h and w with whole numbers; use another "
            "copy, or remove it."
        ) from error
    return {prototype: hint for prototype, hint in found.items() if hint.image >= 0}

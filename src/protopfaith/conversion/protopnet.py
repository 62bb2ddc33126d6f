"""Checkpoints of the original ProtoPNet (Chen et al., 2019): a whole pickled module, or its state dict."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from protopfaith.arguments import odd_kind, shown
from protopfaith.conversion.backbones import in_channels, last_layer, modern_names, named_encoder
from protopfaith.conversion.foreign import ForeignNetwork, check_convolution, check_owners, plain_numbers
from protopfaith.conversion.formats import FORMATS, Asked, Format
from protopfaith.conversion.stubs import module_state, parts_of, state_with
from protopfaith.conversion.unpickling import Stub, read_foreign
from protopfaith.data import Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_file
from protopfaith.network import SIMILARITIES
from protopfaith.network.encoders.adapt import read_state_dict

PROTOTYPES = "prototype_vectors"
EPSILON = 1e-4  # of the original program, where a file does not say it
SIZE = 224
UNUSED = ("fc.", "classifier.")  # of a backbone that was taken over as a whole
ACTIVATIONS = {"ReLU": "relu", "Sigmoid": "sigmoid"}
EXPECTED = "the .pth file that the original ProtoPNet saved, or the state dict of its network"
AMBIGUOUS = 0.5  # of the largest weight: a second one above it may as well be the prototype's class


def is_protopnet(path: Path) -> bool:
    """Whether a path may be such a checkpoint: it is a file, and reading it tells."""
    return is_file(path)


def read_protopnet(path: Path, asked: Asked) -> ForeignNetwork:
    """Understands a checkpoint of the original program.

    Args:
        path: a file
        asked: what the file may not say

    Raises:
        ProtoPFaithError: if it is anything else, in one sentence
    """
    content = read_state_dict(path) if path.suffix == ".safetensors" else read_foreign(path)
    try:
        module = _module(content)
        state = _state(content, path) if module is None else module_state(module)
    except RecursionError as error:
        raise ProtoPFaithError(f"What {path} holds contains itself; give {EXPECTED}.") from error
    attributes = {} if module is None else vars(module)
    encoder_state, layers, rest = _split(state, path)
    prototypes = _prototypes(rest, path)
    weights = _weights(rest, len(prototypes), path)
    owners, notes = _owners(attributes, weights, path)
    similarity, epsilon, more = _similarity(attributes, asked, path)
    size, told = _size(attributes, asked)
    parts = parts_of(module)
    named, convolutions = _add_on(layers, parts_of(parts.get("add_on_layers")), path)
    encoder = named_encoder(encoder_state, parts_of(parts.get("features")), asked.encoder, path)
    if module is None:
        told = (*told, _unseen(encoder, asked))
    return ForeignNetwork(
        "ProtoPNet, " + ("state dict" if module is None else "whole module"),
        encoder=encoder,
        encoder_state=encoder_state,
        layers=named,
        convolutions=convolutions,
        prototypes=prototypes,
        owners=owners,
        weights=weights,
        similarity=similarity,
        epsilon=epsilon,
        preprocessing=_preprocessing(size, encoder_state),
        notes=(*notes, *more, *told),
    )


FORMATS.register("protopnet")(Format("a .pth file of the original ProtoPNet", is_protopnet, read_protopnet))


def _module(content: Any) -> Stub | None:
    """The network, if the file holds it as a whole."""
    if isinstance(content, dict):
        inside = (value for value in content.values() if isinstance(value, Stub | dict))
        return next((found for value in inside if (found := _module(value)) is not None), None)
    if not isinstance(content, Stub):
        return None
    if PROTOTYPES in module_state(content):
        return content
    parts = parts_of(content).values()  # nn.DataParallel, or a program of somebody's, around it
    return next((found for part in parts if (found := _module(part)) is not None), None)


def _state(content: Any, path: Path) -> dict[str, Tensor]:
    """The tensors of the network, wherever the file has them, under the original's names."""
    found = state_with(content, PROTOTYPES)
    if found is not None:
        return found
    tensors = content if isinstance(content, dict) else {}
    if not any(isinstance(value, Tensor) for value in tensors.values()):
        raise ProtoPFaithError(f"{path} holds no network; give {EXPECTED}.")
    return {str(key): value for key, value in tensors.items() if isinstance(value, Tensor)}


def _split(
    state: Mapping[str, Tensor], path: Path
) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, Tensor]]:
    """The tensors of the encoder, of Z, and the others."""
    groups: dict[str, dict[str, Tensor]] = {"features.": {}, "add_on_layers.": {}, "": {}}
    for key, tensor in plain_numbers(state, path).items():
        start = next(start for start in groups if key.startswith(start))
        groups[start][key.removeprefix(start)] = tensor
    if not groups["features."] or not {PROTOTYPES, "last_layer.weight"} <= groups[""].keys():
        raise ProtoPFaithError(
            f"{path} is no ProtoPNet: it should hold features.*, prototype_vectors and last_layer.weight, "
            f"but has {shown(list(state)[:4])}; give {EXPECTED}."
        )
    if bool(groups[""].get("last_layer.bias", torch.zeros(1)).any()):
        raise ProtoPFaithError(
            f"The last layer in {path} has a bias, which the original ProtoPNet does not have and this one "
            "cannot show; convert a network without."
        )
    features = {key: value for key, value in groups["features."].items() if not key.startswith(UNUSED)}
    return modern_names(features), groups["add_on_layers."], groups[""]


def _prototypes(rest: Mapping[str, Tensor], path: Path) -> Tensor:
    prototypes = rest[PROTOTYPES]
    if prototypes.dim() == 2:
        prototypes = prototypes[:, :, None, None]
    if prototypes.dim() != 4:
        raise ProtoPFaithError(f"The prototypes in {path} are no P x D x 1 x 1 tensor; give {EXPECTED}.")
    if prototypes.shape[2:] != (1, 1):
        raise ProtoPFaithError(
            f"The prototypes in {path} are patches of {prototypes.shape[2]} x {prototypes.shape[3]} latent "
            "vectors, and only those of one vector (1 x 1) can be converted; use a network with these."
        )
    return prototypes.flatten(1)


def _weights(rest: Mapping[str, Tensor], count: int, path: Path) -> Tensor:
    weights = rest["last_layer.weight"]
    if weights.dim() != 2 or weights.shape[1] != count or len(weights) < 2:
        raise ProtoPFaithError(
            f"The last layer in {path} has the shape {shown(tuple(weights.shape))}, which does not fit "
            f"{count} prototypes; use another copy of it."
        )
    return weights


def _owners(attributes: Mapping[str, Any], weights: Tensor, path: Path) -> tuple[Tensor, tuple[str, ...]]:
    """The class of each prototype: as the module says, or else the one that its weight is largest to."""
    notes: tuple[str, ...] = ()
    identity = attributes.get("prototype_class_identity")
    if (
        isinstance(identity, Tensor)
        and not odd_kind(identity)
        and identity.shape == weights.T.shape
        and bool(((identity != 0).sum(1) == 1).all())
    ):
        owners = (identity != 0).float().argmax(1)  # of a bool there is no argmax
    else:
        owners = owners_from_weights(weights, path)
        notes = ("The class of each prototype is the one that its weight in the last layer is largest to.",)
    check_owners(owners, len(weights), path)
    return owners, notes


def owners_from_weights(weights: Tensor, path: Path | str) -> Tensor:
    """The class of each prototype from F's weights (C, P); raises if two classes may be meant.

    >>> owners_from_weights(torch.tensor([[1.0, -0.5, 0.9], [0.0, 1.2, -0.1]]), "model.pth").tolist()
    [0, 1, 0]
    """
    first, second = weights.topk(2, dim=0).values
    doubtful = torch.where((first <= 0) | (second > AMBIGUOUS * first))[0].tolist()
    if doubtful:
        one = doubtful[0]
        raise ProtoPFaithError(
            f"The class of prototype {one} in {path} is ambiguous: its largest weights in the last layer are "
            f"{float(first[one]):.3g} and {float(second[one]):.3g}; give the whole saved module, which says "
            "the class of each prototype."
        )
    return weights.argmax(0)


def _similarity(
    attributes: Mapping[str, Any], asked: Asked, path: Path
) -> tuple[str, float | None, tuple[str, ...]]:
    said = attributes.get("prototype_activation_function")
    name = asked.similarity or said or "log"
    if not isinstance(name, str) or name not in SIMILARITIES:
        raise ProtoPFaithError(
            f"The similarity of {path} is {shown(name)}; log and linear can be converted: name one of them "
            "with --similarity if it is the same."
        )
    if name == "linear":
        unused = (
            () if asked.epsilon is None else ("The linear similarity has no epsilon; --epsilon is not used.",)
        )
        return name, None, unused
    epsilon = asked.epsilon if asked.epsilon is not None else attributes.get("epsilon")
    notes = () if said or asked.similarity else _assumed("similarity", "log")
    if not isinstance(epsilon, int | float):
        epsilon, notes = EPSILON, (*notes, *_assumed("epsilon", f"{EPSILON:g}"))
    return name, float(epsilon), notes


def _assumed(what: str, value: str) -> tuple[str, ...]:
    return (
        f"The file does not say its {what}; {value} is assumed, as in the original (--{what} says another).",
    )


def _add_on(
    state: Mapping[str, Tensor], modules: Mapping[str, Stub], path: Path
) -> tuple[list[int | str], list[tuple[Tensor, Tensor]]]:
    """Z: convolutions with ReLUs between and a sigmoid at the end, unless its modules say otherwise."""
    numbers = sorted({key.split(".")[0] for key in state} | set(modules), key=_number)
    layers: list[int | str] = []
    convolutions = []
    for place, number in enumerate(numbers):
        weight = state.get(f"{number}.weight")
        if weight is None:
            layers.append(_activation(modules.get(number), number, path))
            continue
        convolutions.append(check_convolution(weight, state.get(f"{number}.bias"), path))
        layers.append(len(weight))
        if not modules:  # a state dict has no layers without tensors
            layers.append("sigmoid" if place == len(numbers) - 1 else "relu")
    return layers, convolutions


def _activation(module: Stub | None, number: str, path: Path) -> str:
    if module is None:
        raise ProtoPFaithError(
            f"The add-on layer {shown(number)} in {path} has no weights, only "
            "other tensors; use another copy of the file."
        )
    name = type(module).__name__
    if name not in ACTIVATIONS:
        raise ProtoPFaithError(
            f"The add-on layers in {path} have a {name}; 1 x 1 convolutions, ReLU and Sigmoid can be "
            "converted."
        )
    return ACTIVATIONS[name]


def _number(text: str) -> tuple[int, str]:
    return (int(text), "") if text.isdecimal() else (-1, text)


def _unseen(encoder: str, asked: Asked) -> str:
    """What a state dict cannot say, as it has no layers without numbers."""
    pooling = says = ""
    if encoder.startswith("vgg") and asked.encoder is None:
        pooling = ", and pooling at the end of the VGG"
        says = f" (--encoder {encoder}@features.{last_layer(encoder) - 1} says that there is none)"
    return (
        "A state dict does not say its layers without numbers: ReLU between the add-on convolutions and a "
        f"sigmoid after them{pooling} are assumed, as in the original{says}; the whole module would say."
    )


def _size(attributes: Mapping[str, Any], asked: Asked) -> tuple[int, tuple[str, ...]]:
    said = attributes.get("img_size")
    if asked.size:
        return asked.size, ()
    if isinstance(said, int) and said > 0:
        return said, ()
    return SIZE, _assumed("size", str(SIZE))


def _preprocessing(size: int, encoder_state: Mapping[str, Tensor]) -> Preprocessing:
    if in_channels(encoder_state) == 1:
        return Preprocessing((size, size), 1, (0.0,), (1.0,))
    return Preprocessing((size, size))

"""Checkpoints of the original ProtoPNet (Chen et al., 2019): a whole pickled module, or its state dict."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from protopfaith.arguments import odd_kind, shown
from protopfaith.conversion.backbones import find_encoder, in_channels, modern_names
from protopfaith.conversion.foreign import ForeignNetwork, SourceHint, check_owners, plain_numbers
from protopfaith.conversion.formats import FORMATS, Asked, Format
from protopfaith.conversion.unpickling import Stub, read_foreign
from protopfaith.data import Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import is_file, plain_file
from protopfaith.network import SIMILARITIES
from protopfaith.network.encoders.adapt import differences, read_state_dict

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
    named, convolutions = _add_on(layers, attributes, path)
    encoder = _encoder(encoder_state, attributes, asked, path)
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


def module_state(module: Stub, prefix: str = "") -> dict[str, Tensor]:
    """The state dict of a module that is a stub: its parameters and buffers, and those of its parts.

    >>> from protopfaith.conversion.unpickling import stub_class
    >>> module = stub_class("torch.nn", "Linear").__new__(stub_class("torch.nn", "Linear"))
    >>> module.__setstate__({"_parameters": {"weight": torch.zeros(1), "bias": None}})
    >>> list(module_state(module, "last_layer."))
    ['last_layer.weight']
    """
    found: dict[str, Tensor] = {}
    values = vars(module)
    for kind in ("_parameters", "_buffers"):
        entries = values.get(kind)
        for name, tensor in entries.items() if isinstance(entries, dict) else ():
            if isinstance(tensor, Tensor):
                found[f"{prefix}{name}"] = tensor
    for name, part in parts_of(module).items():
        found |= module_state(part, f"{prefix}{name}.")
    return found


def parts_of(module: Any) -> dict[str, Stub]:
    """The modules inside a module that is a stub."""
    entries = vars(module).get("_modules") if isinstance(module, Stub) else None
    if not isinstance(entries, dict):
        return {}
    return {str(name): part for name, part in entries.items() if isinstance(part, Stub)}


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


def state_with(content: Any, name: str) -> dict[str, Tensor] | None:
    """The tensors that stand beside the one of that name, in a dictionary of dictionaries, whatever their
    names begin with: `module.` of nn.DataParallel, `_orig_mod.` of torch.compile, the name of an attribute.

    Args:
        content: what a file holds
        name: of one tensor

    >>> state_with({"epoch": 3, "state_dict": {"module.x": torch.zeros(1), "loss.w": torch.ones(1)}}, "x")
    {'x': tensor([0.])}
    """
    if not isinstance(content, dict):
        return None
    tensors = {str(key): value for key, value in content.items() if isinstance(value, Tensor)}
    starts = [key.removesuffix(name) for key in tensors if key == name or key.endswith(f".{name}")]
    if starts:
        start = min(starts, key=len)
        return {key.removeprefix(start): tensors[key] for key in tensors if key.startswith(start)}
    inside = (state_with(value, name) for value in content.values())
    return next((found for found in inside if found is not None), None)


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
    state: Mapping[str, Tensor], attributes: Mapping[str, Any], path: Path
) -> tuple[list[int | str], list[tuple[Tensor, Tensor]]]:
    """Z: convolutions with ReLUs between and a sigmoid at the end, unless the module says otherwise."""
    modules = parts_of(parts_of_attributes(attributes).get("add_on_layers"))
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


def parts_of_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The modules among the attributes of a stub."""
    found = attributes.get("_modules")
    return found if isinstance(found, dict) else {}


def check_convolution(weight: Tensor, bias: Tensor | None, path: Path | str) -> tuple[Tensor, Tensor]:
    """A 1x1 convolution of Z with its bias, zeros where it has none; raises if it is anything else."""
    if weight.dim() != 4 or weight.shape[2:] != (1, 1):
        raise ProtoPFaithError(
            f"An add-on layer in {path} has weights of shape {shown(tuple(weight.shape))}; only 1 x 1 "
            "convolutions can be converted."
        )
    return weight, torch.zeros(len(weight)) if bias is None else bias


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


def _encoder(state: Mapping[str, Tensor], attributes: Mapping[str, Any], asked: Asked, path: Path) -> str:
    name = find_encoder(state, path)
    if asked.encoder is not None:
        return _as_asked(asked.encoder, name, state, path)
    modules = parts_of(parts_of_attributes(attributes).get("features"))
    if name.startswith("vgg") and "features" in modules:  # the last pooling has no tensors
        return _with_its_last_layer(name, parts_of(modules["features"]))
    if name.startswith("res") and "layer2" in modules:
        return _with_its_stride(name, modules["layer2"], path)
    return name


def _as_asked(asked: str, found: str, state: Mapping[str, Tensor], path: Path) -> str:
    """The encoder as the caller names it: the file's own, perhaps cut at a layer that leaves all its tensors,
    or with its strides elsewhere."""
    own = {found, "resnet50_v1"} if found == "resnet50" else {found}
    if asked.partition("@")[0] in own and not _cut_differences(asked, state):
        return asked
    example = (
        f"{found}@features.{_last_layer(found) - 1}" if found.startswith("vgg") else " or ".join(sorted(own))
    )
    raise ProtoPFaithError(
        f"The encoder {shown(asked)} is not that of {path}, whose tensors are those of {found}; name it as "
        f"{example}, or leave --encoder out."
    )


def _cut_differences(name: str, state: Mapping[str, Tensor]) -> str:
    """What keeps the tensors from filling an encoder that may be cut; empty if nothing does."""
    from protopfaith.network import build_encoder

    try:
        with torch.device("meta"):
            outline = build_encoder(name, in_channels(state)).state_dict()
    except ProtoPFaithError as error:  # it has no such layer
        return str(error)
    return differences(state, outline)


def _unseen(encoder: str, asked: Asked) -> str:
    """What a state dict cannot say, as it has no layers without numbers."""
    pooling = says = ""
    if encoder.startswith("vgg") and asked.encoder is None:
        pooling = ", and pooling at the end of the VGG"
        says = f" (--encoder {encoder}@features.{_last_layer(encoder) - 1} says that there is none)"
    return (
        "A state dict does not say its layers without numbers: ReLU between the add-on convolutions and a "
        f"sigmoid after them{pooling} are assumed, as in the original{says}; the whole module would say."
    )


def _last_layer(vgg: str) -> int:
    """The number of the last layer, which is the pooling."""
    from protopfaith.network import build_encoder

    with torch.device("meta"):
        return len(build_encoder(vgg).get_submodule("features")) - 1  # type: ignore[arg-type]


def _with_its_last_layer(name: str, layers: Mapping[str, Stub]) -> str:
    """VGG, cut where the file's network ends."""
    whole = _last_layer(name)
    last = max((int(number) for number in layers if number.isdecimal()), default=whole)
    return name if last == whole else f"{name}@features.{last}"


def _with_its_stride(name: str, stage: Stub, path: Path) -> str:
    """ResNet, with the stride where the file's network has it."""
    block = parts_of(stage).get("0")
    blocks = parts_of(block)
    if "conv3" not in blocks or tuple(vars(blocks["conv1"]).get("stride", ())) != (2, 2):
        return name
    if name != "resnet50":
        raise ProtoPFaithError(
            f"The {name} in {path} has its strides in the 1 x 1 convolutions, as the first version; only "
            "that of resnet50 can be converted."
        )
    return "resnet50_v1"


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


def read_boxes(path: Path | str, count: int) -> dict[int, SourceHint]:
    """The image of each prototype from a `bb*.npy` of the original program: one row for each prototype, the
    number of its image first; -1 stands for none.

    Args:
        path: the file
        count: of the prototypes
    """
    import numpy as np

    try:
        boxes = np.load(plain_file(path), mmap_mode="r", allow_pickle=False)  # what it declares may be huge
        if not isinstance(boxes, np.ndarray):
            raise ValueError("several arrays")
    except Exception as error:  # NumPy reads the header as Python's source, and raises almost anything
        raise ProtoPFaithError(
            f"{path} cannot be read as an array; give a bb*.npy file that the original ProtoPNet wrote."
        ) from error
    if boxes.ndim != 2 or boxes.shape[0] != count or boxes.shape[1] < 5 or boxes.dtype.kind not in "iuf":
        raise ProtoPFaithError(
            f"{path} has the shape {shown(boxes.shape)}, but there should be one row of image number and box "
            f"for each of the {count} prototypes; give the bb*.npy of the same network."
        )
    numbers = enumerate(boxes[:, 0].tolist())
    return {place: SourceHint(int(image)) for place, image in numbers if 0 <= image < math.inf}

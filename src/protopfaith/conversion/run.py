"""From somebody's checkpoint to a run folder that every command takes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from protopfaith.annotations import check_arguments
from protopfaith.arguments import not_empty, shown, whole_number
from protopfaith.conversion.check import Check, check_conversion
from protopfaith.conversion.foreign import ForeignNetwork, build
from protopfaith.conversion.formats import Asked, read_network
from protopfaith.conversion.sources import FoundSources, find_sources, read_boxes
from protopfaith.data import ImageData
from protopfaith.data.birds import CLASSES, draw_bird
from protopfaith.devices import choose_device
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import read_plain_text
from protopfaith.network import PatchNetwork, distinct_prototypes, save
from protopfaith.training.new_run import versions
from protopfaith.training.recipe import Recipe
from protopfaith.training.recipe_sections import DataRecipe, ModelRecipe
from protopfaith.training.run import Run, load_recipe_data
from protopfaith.training.trust import new_mark
from protopfaith.writing import atomic, refuse_existing

LARGEST_SIDE = 100_000


@dataclass(frozen=True)
class Conversion:
    """A converted network: its run, what was understood, and how it was checked.

    Args:
        run: the new run
        network: what the file holds
        model: the network, read again from the run
        check: how far it says what the file says
        picture: that it was checked on
        sources: how the sources of prototypes were found; None without images

    >>> from dataclasses import fields
    >>> [one.name for one in fields(Conversion)][:2]
    ['run', 'network']
    """

    run: Run
    network: ForeignNetwork
    model: PatchNetwork
    check: Check
    picture: str
    sources: FoundSources | None

    def lines(self) -> list[str]:
        """What was understood, for people."""
        network, model = self.network, self.model
        layers = ", ".join(str(layer) for layer in network.layers) or "none"
        epsilon = "" if network.epsilon is None else f", epsilon {network.epsilon:g}"
        return [
            f"Format: {network.format}",
            f"Encoder: {network.encoder}, add-on layers: {layers}",
            f"Similarity: {network.similarity}{epsilon}",
            f"Prototypes: {len(model.prototypes)} of {model.prototypes.shape[1]} channels, "
            f"{distinct_prototypes(model).distinct} of them distinct",
            *_about_tree(network),
            f"Classes: {_some(model.class_names)}",
            f"Images: {_described(network)}",
            *network.notes,
            f"Checked on {self.picture}: {self.check}",
            str(self.sources)
            if self.sources
            else "Sources: none, explain with --no-sources or convert with --root.",
        ]

    def __repr__(self) -> str:
        return f"Conversion({self.network.format}, {self.run.folder})"


def convert(
    path: Path | str,
    out: Path | str,
    *,
    format: str | None = None,
    root: Path | str | None = None,
    data: str = "folder",
    classes: Sequence[str] | Path | str | None = None,
    boxes: Path | str | None = None,
    similarity: str | None = None,
    epsilon: float | None = None,
    size: int | None = None,
    encoder: str | None = None,
    image: Path | str | None = None,
    device: str = "auto",
) -> Conversion:
    """Turns a prototype network trained with another program into a run. Nothing in its files is executed.

    Args:
        path: a .pth file of the original ProtoPNet (whole module or state dict), or a directory of CaBRNet
            (ProtoPNet or ProtoTree)
        out: the folder of the new run
        format: one of `protopfaith.conversion.FORMATS`; recognized by default
        root: the folder of its images, to name classes and to find the sources of its prototypes
        data: the data set that they are, one of `protopfaith.data.DATASETS`
        classes: their names in the network's order, or a file with one on each line; the data's by default
        boxes: the original ProtoPNet's `bb*.npy`, which says the image of each prototype
        similarity: "log" or "linear", where the file does not say it
        epsilon: of the log similarity, where the file does not say it
        size: of its square images in pixels, where the file does not say it
        encoder: what a state dict of the original does not say of it: `vgg16@features.29` ends before the
            last pooling, `resnet50_v1` has its strides in the 1 x 1 convolutions
        image: the picture to check the converted network on
        device: where to look for sources

    Returns:
        The run, and what was understood.

    Raises:
        ProtoPFaithError: if the file is anything else

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     convert("ProtoPNet.pth", f"{folder}/run")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    protopfaith.errors.ProtoPFaithError: There is nothing at ProtoPNet.pth; give ...
    """
    check_arguments(convert, locals())
    path, out = (Path(not_empty(one, "A path")) for one in (path, out))
    refuse_existing(out)
    if size is not None:
        whole_number(size, "The size of the images", least=1, most=LARGEST_SIDE)
    choose_device(device)  # a typo is told before the work
    network = read_network(path, Asked(similarity, epsilon, size, encoder), format)
    if boxes is not None:
        network = replace(network, hints=read_boxes(boxes, len(network.prototypes)))
    recipe = _recipe(network, data, root)
    images = None if root is None and data == "folder" else _images(recipe, network)
    model = build(network, _class_names(classes, images, len(network.weights)))
    name, picture = _picture(image, images, network)
    check_conversion(network, model, network.preprocessing(picture))
    sources = None
    if images is not None:
        place = {old: new for new, old in enumerate(network.order.tolist())}
        hints = {place[old]: hint for old, hint in network.hints.items()}
        sources = find_sources(model.to(choose_device(device)), images, hints)
    run = _write(out, recipe, model, network, images=images, file=path.name)
    saved = run.model()
    check = check_conversion(network, saved, network.preprocessing(picture))  # as it will be used
    return Conversion(run, network, saved, check, name, sources)


def _recipe(network: ForeignNetwork, data: str, root: Path | str | None) -> Recipe:
    """How the network could be trained here; what it says of its images is used."""
    preprocessing = network.preprocessing
    options = {"channels": preprocessing.channels} if data == "folder" and preprocessing.channels == 1 else {}
    where = None if root is None else str(Path(root).expanduser().absolute())
    tree = network.branches is not None
    return Recipe(
        data=DataRecipe(name=data, root=where, size=preprocessing.size, options=options),
        model=ModelRecipe(
            family="prototree" if tree else "protopnet",
            encoder=network.encoder,
            prototypes_per_class=ModelRecipe.prototypes_per_class
            if tree
            else int(network.owners.bincount().max()),
            prototype_channels=network.prototypes.shape[1],
            activation="relu" if network.layers[-1:] == ["relu"] else "sigmoid",
            similarity=ModelRecipe.similarity if tree else network.similarity,
        ),
    )


def _images(recipe: Recipe, network: ForeignNetwork) -> ImageData:
    data, where = load_recipe_data(recipe), recipe.data.root or recipe.data.name
    if len(data.classes) != len(network.weights):
        raise ProtoPFaithError(
            f"The network has {len(network.weights)} classes, but the images in {where} "
            f"have {len(data.classes)}; give those that it was trained on."
        )
    return replace(data, preprocessing=network.preprocessing)


def _class_names(given: Sequence[str] | Path | str | None, images: ImageData | None, count: int) -> list[str]:
    if given is None:
        return [str(number) for number in range(count)] if images is None else list(images.classes)
    if isinstance(given, str | Path):
        text = read_plain_text(Path(given), "a text file with the name of one class on each line")
        given = [line.strip() for line in text.splitlines() if line.strip()]
    names = list(given)
    if len(names) != count:
        raise ProtoPFaithError(
            f"The network has {count} classes, but {len(names)} names were given ({shown(names)}); give one "
            "for each, in the network's order."
        )
    return names


def _picture(
    path: Path | str | None, images: ImageData | None, network: ForeignNetwork
) -> tuple[str, Image.Image | Any]:
    """What to check the network on: the picture asked for, one of its images, or a drawing."""
    if path is not None:
        return str(path), network.preprocessing.read(path)
    if images is not None:
        chosen = next(one for one in (images.test, images.validation, images.train) if len(one))
        return chosen.paths[0], chosen.image(0)
    side = min(max(network.preprocessing.size), 512)
    return "a drawn bird", draw_bird(CLASSES[0], np.random.default_rng(0), side).image


def _write(
    out: Path,
    recipe: Recipe,
    model: PatchNetwork,
    network: ForeignNetwork,
    *,
    images: ImageData | None,
    file: str,
) -> Run:
    """The run folder: it appears whole, or not at all."""
    counts = {} if images is None else {name: len(one) for name, one in images.sets().items()}
    fingerprint = "" if images is None else images.fingerprint
    environment = {
        "versions": versions(),
        "seed": recipe.seed,
        "data_fingerprint": fingerprint,
        "classes": list(model.class_names),
        "images": counts,
        "converted_from": {"file": file, "format": network.format, "notes": list(network.notes)},
        **new_mark(recipe),
    }
    metadata = {
        "preprocessing": network.preprocessing.to_dict(),
        "data_fingerprint": fingerprint,
        "recipe": replace(recipe, data=replace(recipe.data, root=None)).to_dict(),
        "result": {
            "epoch": None,
            "cycle": None,
            "validation_balanced_accuracy": None,
            "distinct_prototypes": distinct_prototypes(model).distinct,
            "prototypes": len(model.prototypes),
        },
    }
    with atomic(out) as partial:
        partial.mkdir()
        (partial / "environment.json").write_text(json.dumps(environment, indent=2))
        recipe.save(partial / "recipe.yaml")
        save(model, partial / "model.safetensors", metadata)
    return Run(out)


def _about_tree(network: ForeignNetwork) -> list[str]:
    tree = network.branches
    return [] if tree is None else [f"Tree: {tree.nodes} nodes, {tree.leaves} leaves, depth {tree.depth}"]


def _some(names: Sequence[str], most: int = 5) -> str:
    more = f", ... ({len(names)})" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _described(network: ForeignNetwork) -> str:
    preprocessing = network.preprocessing
    height, width = preprocessing.size
    mean, std = (
        ", ".join(f"{value:g}" for value in values) for values in (preprocessing.mean, preprocessing.std)
    )
    return (
        f"{height} x {width} pixels, {preprocessing.channels} channels, mean {mean}, standard deviation {std}"
    )

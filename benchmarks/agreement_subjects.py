"""What `agreement.py` explains: images, and a function of them as a game."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from opening import open_network, spread
from protopfaith.shapley import Game, Players


@dataclass(frozen=True)
class Subject:
    """The game on one image, and the same in float32 for what half precision would spoil."""

    game: Game
    full: Game


def open_subjects(options: argparse.Namespace, device: torch.device) -> Iterable[Subject]:
    function, images = _function_and_images(options)
    if isinstance(function, torch.nn.Module):
        function = function.to(device).to(memory_format=torch.channels_last).eval()
    dtype = getattr(torch, options.autocast) if options.autocast else None
    if not hasattr(function, "prototype_classes") and options.choose == "class":
        options.choose = "total"
    for image in images[: options.images].to(device):
        players = Players.windows(image.shape[1:], options.players)
        asked = _asked(function, image, options)

        def some(batch: Tensor, asked: Callable[[Tensor], Tensor] = asked) -> Tensor:
            if isinstance(batch, Tensor) and batch.is_cuda:
                batch = batch.contiguous(memory_format=torch.channels_last)
            return asked(batch)

        full = Game(some, image, players, options.baseline)
        game = full if dtype is None else Game(some, image, players, options.baseline, autocast=dtype)
        yield Subject(game, full)


def _outputs(function: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
    """A prototype network's distances, or whatever else the function gives."""
    distances = getattr(function, "distances", None)
    return function(images) if distances is None else distances(images)


@torch.no_grad()
def _asked(
    function: Callable[[Tensor], Tensor], image: Tensor, options: argparse.Namespace
) -> Callable[[Tensor], Tensor]:
    """Some of the outputs; or the predicted class's logit minus the mean of all, which reports explain."""
    if options.choose != "margin":
        chosen = _chosen(function, image, options)
        return lambda images: _outputs(function, images)[:, chosen]
    predicted = int(function(image[None]).argmax())
    rows = function.classifier.weight - function.classifier.weight.mean(0)  # type: ignore[attr-defined]
    own = rows[predicted : predicted + 1].detach()
    return lambda images: function.logits(function.distances(images), own)  # type: ignore[attr-defined]


@torch.no_grad()
def _chosen(function: Callable[[Tensor], Tensor], image: Tensor, options: argparse.Namespace) -> Tensor:
    one_player = Players.windows(image.shape[1:], max(image.shape[1:]))
    ends = Game(lambda x: _outputs(function, x), image, one_player, options.baseline)
    count = min(options.prototypes, ends.n_outputs)
    if options.choose == "class":
        predicted = function(image[None]).argmax()
        own = torch.where(function.prototype_classes.to(image.device) == predicted)[0]  # type: ignore[attr-defined]
        return own[ends.grand[own].argsort()][:count]
    if options.choose == "nearest":
        return ends.grand.argsort()[:count]
    return ends.total.abs().argsort(descending=True)[:count]


def _function_and_images(options: argparse.Namespace) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    if options.demo:
        from small import trained_network

        return trained_network(print)
    if options.factory:
        module, _, name = options.factory.partition(":")
        return getattr(importlib.import_module(module), name)()
    if options.array:
        return _with_array(options)
    opened = open_network(options)
    pixels = [opened.data.test.image(index) for index in spread(options.images, len(opened.data.test))]
    return opened.model, opened.preprocessing.normalize(torch.stack(pixels))


def _with_array(options: argparse.Namespace) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    from protopfaith.data import Preprocessing
    from protopfaith.network import load

    model, metadata = load(options.checkpoint)
    if "preprocessing" not in metadata:
        raise SystemExit(
            "The checkpoint does not say how its images were normalized; give --data instead of --array."
        )
    pixels = torch.from_numpy(np.load(options.array)[: options.images])
    return model, Preprocessing.from_dict(metadata["preprocessing"]).normalize(pixels)

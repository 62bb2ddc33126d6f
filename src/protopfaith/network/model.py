"""ProtoPNet: f = F o Q o Z o V."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from protopfaith.arguments import instance, shown, whole_number
from protopfaith.dtypes import full_precision
from protopfaith.errors import ProtoPFaithError
from protopfaith.network.contract import FAMILIES, PrototypeSource
from protopfaith.network.distances import minimum_over_positions, squared_distances
from protopfaith.network.encoders import build_encoder, output_channels
from protopfaith.network.encoders.adapt import load_weights
from protopfaith.network.layers import (
    feature_layers,
    last_activation,
    last_channels,
    own_class_weights,
    similarity_function,
    stacked_layers,
)
from protopfaith.network.outcome import Outcome

MOST = 100_000
"""Classes, prototypes of a class, channels of a prototype: more are not meant."""
MOST_CHANNELS = 1_024


@FAMILIES.register("protopnet")
class ProtoPNet(nn.Module):
    """A prototype network: encoder V, features Z, prototypes Q and the classifier F.

    Args:
        encoder: a name (see `protopfaith.network.build_encoder`) or a module that returns a feature map
        classes: their number or names
        prototypes_per_class: one number, or one for each class
        prototype_channels: L, the length of a prototype
        in_channels: of the images
        activation: of Z, one of `ACTIVATIONS`
        similarity: what F reads: one of `SIMILARITIES`
        weights: for the encoder: None, "imagenet", or the path of a state dict
        epsilon: of the log similarity, if not its own
        layers: Z of another shape, as `[128, "relu", 128, "sigmoid"]`; `activation` is then its last one

    >>> model = ProtoPNet("small", ["cat", "dog"], prototypes_per_class=3, prototype_channels=16)
    >>> x = torch.zeros(4, 3, 96, 96)
    >>> model(x).shape, model.distances(x).shape, model.distance_maps(x).shape
    (torch.Size([4, 2]), torch.Size([4, 6]), torch.Size([4, 6, 12, 12]))
    """

    prototype_classes: Tensor
    outcome: Outcome = "one"
    fewest_classes = 2

    def __init__(
        self,
        encoder: str | nn.Module,
        classes: int | Sequence[str],
        prototypes_per_class: int | Sequence[int] = 5,
        prototype_channels: int = 128,
        *,
        in_channels: int = 3,
        activation: str = "relu1",
        similarity: str = "linear",
        epsilon: float | None = None,
        layers: Sequence[int | str] | None = None,
        weights: str | Path | None = None,
    ):
        super().__init__()
        instance(encoder, (str, nn.Module), "The encoder", "a name or a module")
        whole_number(prototype_channels, "The number of prototype channels", least=1, most=MOST)
        whole_number(in_channels, "The number of image channels", least=1, most=MOST_CHANNELS)
        self.class_names = _names(classes, self.fewest_classes)
        counts = _counts(prototypes_per_class, self.class_names)
        self.in_channels = in_channels
        self.similarity = similarity
        self.epsilon = epsilon
        self.layers = None if layers is None else list(layers)
        self.encoder_name = encoder if isinstance(encoder, str) else None
        self.encoder = _encoder(encoder, in_channels, weights)
        encoded = output_channels(self.encoder, in_channels, self.encoder_name)
        if self.layers is None:
            self.activation = activation
            self.features = feature_layers(encoded, prototype_channels, activation)
        else:
            self.activation = last_activation(self.layers)
            self.features = stacked_layers(encoded, self.layers)
            _check_channels(prototype_channels, last_channels(encoded, self.layers))
        start = torch.randn if self.activation == "unit" else torch.rand  # directions, or values in [0, 1]
        self.prototypes = nn.Parameter(start(sum(counts), prototype_channels))
        owners = torch.tensor([number for number, count in enumerate(counts) for _ in range(count)])
        self.register_buffer("prototype_classes", owners)
        self.classifier = nn.Linear(len(owners), len(counts), bias=False)
        with torch.no_grad():
            self.classifier.weight.copy_(own_class_weights(owners, len(counts)))
        self.sources: list[PrototypeSource | None] = [None] * len(owners)
        self._similarity = similarity_function(similarity, epsilon)
        self.settle_prototypes()

    @torch.no_grad()
    def settle_prototypes(self) -> None:
        """Puts prototypes back where latent vectors can be: on the unit sphere, if these are of unit length.
        Called after every step that moves them."""
        if self.activation == "unit":
            self.prototypes.copy_(normalize(self.prototypes, dim=1))

    def latent(self, x: Tensor) -> Tensor:
        """Z(V(x)): (B, L, h, w)."""
        self._check(x)
        return self.features(self.encoder(x))

    def distance_maps(self, x: Tensor) -> Tensor:
        """Squared distances of every prototype at every position: (B, P, h, w)."""
        return squared_distances(self.latent(x), self.prototypes)

    def distances(self, x: Tensor) -> Tensor:
        """s, the minimum of each map: (B, P)."""
        return minimum_over_positions(self.distance_maps(x))

    def encoded_distances(self, encoded: Tensor) -> Tensor:
        """s from V(x), for callers who need both: (B, P)."""
        return minimum_over_positions(squared_distances(self.features(encoded), self.prototypes))

    def similarities(self, distances: Tensor) -> Tensor:
        """What F reads of distances of any shape: -s, or the log similarity."""
        return self._similarity(distances)

    def readout(self) -> Tensor:
        """F's weights, (C, P): how similarities add up to logits."""
        return self.classifier.weight.detach()

    def logits(self, distances: Tensor, rows: Tensor | None = None) -> Tensor:
        """F on the similarities that belong to `distances` (B, P): (B, C); with `rows` (n, P) in the
        place of F's weights: (B, n).

        In full precision, whatever the caller's: a logit is a small difference of large sums, and distances
        of dozens have two digits left in bfloat16.
        """
        with full_precision(self.prototypes.device.type):
            similarity = self._similarity(distances)
            return self.classifier(similarity) if rows is None else linear(similarity, rows)

    def forward(self, x: Tensor) -> Tensor:
        return self.logits(self.distances(x))

    def keep(self, kept: Sequence[int]) -> None:
        """Forgets all other prototypes, in place."""
        indices = torch.tensor(kept, dtype=torch.long, device=self.prototypes.device)
        self.prototypes = _selected(self.prototypes, indices, 0)
        self.prototype_classes = self.prototype_classes[list(kept)]
        self.classifier.in_features = len(kept)
        self.classifier.weight = _selected(self.classifier.weight, indices, 1)
        self.sources = [self.sources[index] for index in kept]

    @property
    def config(self) -> dict[str, Any]:
        """What the constructor needs to build this network again, but for a module given as encoder."""
        counts = torch.bincount(self.prototype_classes, minlength=len(self.class_names)).tolist()
        special = {"epsilon": self.epsilon, "layers": self.layers}
        return {
            "encoder": self.encoder_name,
            "classes": list(self.class_names),
            "prototypes_per_class": counts[0] if len(set(counts)) == 1 else counts,
            "prototype_channels": self.prototypes.shape[1],
            "in_channels": self.in_channels,
            "activation": self.activation,
            "similarity": self.similarity,
            # Only where they are there: earlier versions read the files of all other networks.
            **{key: value for key, value in special.items() if value is not None},
        }

    def _check(self, x: Tensor) -> None:
        if not isinstance(x, Tensor) and not hasattr(x, "mean"):  # moments of an image are no tensor
            raise TypeError(f"The network takes images as a tensor, not {type(x).__name__}.")
        if isinstance(x, Tensor) and (x.dim() != 4 or x.shape[1] != self.in_channels or not x.numel()):
            raise ProtoPFaithError(
                f"The network takes images as B x {self.in_channels} x height x width, but got "
                f"{' x '.join(map(str, x.shape))}; convert the images, or build it with in_channels to match."
            )


def _selected(parameter: Tensor, indices: Tensor, dim: int) -> nn.Parameter:
    return nn.Parameter(parameter.detach().index_select(dim, indices), parameter.requires_grad)


def _names(classes: int | Sequence[str], fewest: int = 2) -> tuple[str, ...]:
    if isinstance(classes, int):
        names = tuple(map(str, range(whole_number(classes, "The number of classes", most=MOST))))
    else:
        names = tuple(instance(classes, (list, tuple), "The classes", "their number or a list of names"))
    if not all(isinstance(name, str) for name in names):
        raise ProtoPFaithError(f"Class names must be texts, not {shown(list(names))}.")
    if len(set(names)) < max(len(names), fewest):
        raise ProtoPFaithError(
            f"A classifier needs at least {('one class', 'two classes')[fewest - 1]} with different names, "
            f"but got {shown(list(names))}."
        )
    return names


def _counts(prototypes_per_class: int | Sequence[int], names: tuple[str, ...]) -> list[int]:
    if isinstance(prototypes_per_class, (list, tuple)):
        counts = list(prototypes_per_class)
    else:
        counts = [prototypes_per_class] * len(names)
    for count in counts:
        whole_number(count, "The number of prototypes of a class", most=MOST)
    if len(counts) != len(names) or min(counts) < 1:
        raise ProtoPFaithError(
            f"Each of the {len(names)} classes needs at least one prototype, but prototypes_per_class is "
            f"{shown(prototypes_per_class)}."
        )
    return counts


def _check_channels(prototype_channels: int, latent: int) -> None:
    if prototype_channels != latent:
        raise ProtoPFaithError(
            f"Prototypes of {prototype_channels} channels cannot be compared with the {latent} channels that "
            "the layers of Z end with; give both the same number."
        )


def _encoder(encoder: str | nn.Module, in_channels: int, weights: str | Path | None) -> nn.Module:
    if isinstance(encoder, str):
        return build_encoder(encoder, in_channels, weights)
    if weights is not None:
        load_weights(encoder, weights)
    return encoder

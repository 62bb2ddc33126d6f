"""V, Z and Q: what families have in common whose prototypes are compared with every latent patch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from protopfaith.arguments import instance, shown, whole_number
from protopfaith.errors import ProtoPFaithError
from protopfaith.network.contract import PrototypeSource
from protopfaith.network.distances import minimum_over_positions, squared_distances
from protopfaith.network.encoders import build_encoder, output_channels
from protopfaith.network.encoders.adapt import load_weights
from protopfaith.network.layers import feature_layers, last_activation, last_channels, stacked_layers
from protopfaith.network.outcome import Outcome

MOST = 100_000
"""Classes, prototypes of a class, channels of a prototype: more are not meant."""
MOST_CHANNELS = 1_024


class PatchNetwork(nn.Module):
    """Encoder V, features Z and prototypes Q; how outputs follow from the distances is a family's own.

    Args:
        encoder: a name (see `protopfaith.network.build_encoder`) or a module that returns a feature map
        classes: their number or names
        prototype_classes: the class of each prototype, -1 for none
        prototype_channels: L, the length of a prototype
        in_channels: of the images
        activation: of Z, one of `ACTIVATIONS`
        layers: Z of another shape, as `[128, "relu", 128, "sigmoid"]`; `activation` is then its last one
        weights: for the encoder: None, "imagenet", or the path of a state dict

    >>> from protopfaith.network import ProtoPNet
    >>> isinstance(ProtoPNet("small", ["cat", "dog"], 1, 8), PatchNetwork)
    True
    """

    outcome: Outcome = "one"
    family: ClassVar[str]
    # What a checkpoint's header has for this family's constructor beside what all have, and its type.
    header: ClassVar[dict[str, Any]]
    prototype_classes: Tensor
    similarity: str

    def __init__(
        self,
        encoder: str | nn.Module,
        classes: tuple[str, ...],
        prototype_classes: Tensor,
        prototype_channels: int,
        *,
        in_channels: int = 3,
        activation: str = "relu1",
        layers: Sequence[int | str] | None = None,
        weights: str | Path | None = None,
    ):
        super().__init__()
        instance(encoder, (str, nn.Module), "The encoder", "a name or a module")
        whole_number(prototype_channels, "The number of prototype channels", least=1, most=MOST)
        whole_number(in_channels, "The number of image channels", least=1, most=MOST_CHANNELS)
        instance(activation, str, "The activation", "the name of one")
        if layers is not None:
            check_layers(layers)
        instance(prototype_classes, Tensor, "The classes of prototypes", "a tensor of whole numbers")
        if prototype_classes.dim() != 1 or prototype_classes.dtype != torch.long:
            raise ProtoPFaithError(
                "The classes of prototypes must be a tensor of one whole number each, not "
                f"{shown(prototype_classes)}."
            )
        self.class_names = classes
        self.in_channels = in_channels
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
        self.prototypes = nn.Parameter(start(len(prototype_classes), prototype_channels))
        self.register_buffer("prototype_classes", prototype_classes)
        self.sources: list[PrototypeSource | None] = [None] * len(prototype_classes)
        self.settle_prototypes()

    @torch.no_grad()
    def settle_prototypes(self) -> None:
        """Puts prototypes back where latent vectors can be: on the unit sphere, if these are of unit length.
        Called after every step that moves them."""
        if self.activation == "unit":
            self.prototypes.copy_(normalize(self.prototypes, dim=1))

    def latent(self, x: Tensor) -> Tensor:
        """Z(V(x)): (B, L, h, w).

        Args:
            x: images (B, C, H, W), normalized
        """
        self._check(x)
        return self.features(self.encoder(x))

    def distance_maps(self, x: Tensor) -> Tensor:
        """Squared distances of every prototype at every position: (B, P, h, w).

        Args:
            x: images (B, C, H, W), normalized
        """
        return squared_distances(self.latent(x), self.prototypes)

    def distances(self, x: Tensor) -> Tensor:
        """s, the minimum of each map: (B, P).

        Args:
            x: images (B, C, H, W), normalized
        """
        return minimum_over_positions(self.distance_maps(x))

    def encoded_distances(self, encoded: Tensor) -> Tensor:
        """s from V(x), for callers who need both: (B, P).

        Args:
            encoded: V(x)
        """
        return minimum_over_positions(self.encoded_maps(encoded))

    def encoded_maps(self, encoded: Tensor) -> Tensor:
        """The maps of distances from V(x): (B, P, h, w).

        Args:
            encoded: V(x)
        """
        return squared_distances(self.features(encoded), self.prototypes)

    def similarities(self, distances: Tensor) -> Tensor:
        """What outputs are made of.

        Args:
            distances: of any shape
        """
        raise NotImplementedError

    def readout(self) -> Tensor | None:
        """The weights (C, P) with which similarities add up to logits; None where they do not."""
        raise NotImplementedError

    def logits(self, distances: Tensor, rows: Tensor | None = None) -> Tensor:
        """The outputs (B, C) that follow from distances.

        Args:
            distances: (B, P)
            rows: (n, P), in the place of the weights of outputs that are sums: (B, n) then
        """
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """The outputs of images, (B, C).

        Args:
            x: images (B, C, H, W), normalized
        """
        return self.logits(self.distances(x))

    def finished(self) -> PatchNetwork:
        """The network as it is saved: itself, unless training left something that can go."""
        return self

    @property
    def config(self) -> dict[str, Any]:
        """What the constructor needs to build this network again, but for a module given as encoder; what
        `header` names is a family's own to add."""
        special = {} if self.layers is None else {"layers": self.layers}
        return {
            "family": self.family,
            "encoder": self.encoder_name,
            "classes": list(self.class_names),
            "prototype_channels": self.prototypes.shape[1],
            "in_channels": self.in_channels,
            "activation": self.activation,
            **special,
        }

    def _check(self, x: Tensor) -> None:
        if not isinstance(x, Tensor) and (not hasattr(x, "mean") or hasattr(x, "__array__")):
            # moments of an image are no tensor, but have a mean; so have arrays of NumPy
            raise TypeError(f"The network takes images as a tensor, not {type(x).__name__}.")
        if isinstance(x, Tensor) and (x.dim() != 4 or x.shape[1] != self.in_channels or not x.numel()):
            raise ProtoPFaithError(
                f"The network takes images as B x {self.in_channels} x height x width, but got "
                f"{' x '.join(map(str, x.shape))}; convert the images, or build it with in_channels to match."
            )
        if isinstance(x, Tensor) and x.layout != torch.strided:
            raise ProtoPFaithError(
                f"The network takes images as plain tensors, not {x.layout}; see .to_dense()."
            )
        if isinstance(x, Tensor) and x.dtype != self.prototypes.dtype:
            self._check_dtype(x)

    def _check_dtype(self, x: Tensor) -> None:
        """Raises if autocast does not take care of it; an encoder of somebody's own may take any numbers."""
        cared_for = x.is_floating_point() and torch.is_autocast_enabled(x.device.type)
        if self.encoder_name and not cared_for:
            raise ProtoPFaithError(
                f"The network computes in {self.prototypes.dtype}, but got images of {x.dtype}; convert the "
                "images (Preprocessing.normalize does), or the network."
            )

    def _check_distances(self, distances: Tensor) -> None:
        """Raises if they are not one number for each prototype in the last dimension, or moments of these."""
        if isinstance(distances, Tensor):
            plain = distances.is_floating_point() and distances.layout == torch.strided
            if plain and distances.shape[-1:] == self.prototypes.shape[:1]:
                return
            found = f"{distances.dtype} of shape {tuple(distances.shape)}"
        elif hasattr(distances, "moments"):
            return
        else:
            found = shown(distances)
        raise ProtoPFaithError(
            f"Distances are a tensor of floats with one for each of the {len(self.prototypes)} prototypes in "
            f"its last dimension, not {found}."
        )

    def _check_rows(self, distances: Tensor, rows: Tensor) -> None:
        """Raises if distances cannot be read by these weights, F's or others in their place."""
        self._check_distances(distances)
        instance(rows, Tensor, "The weights in the place of F's", "a tensor of n x prototypes")
        if rows.dim() != 2 or rows.shape[1] != len(self.prototypes) or not rows.is_floating_point():
            raise ProtoPFaithError(
                f"The weights in the place of F's must be floats of n x {len(self.prototypes)}, not "
                f"{rows.dtype} of shape {tuple(rows.shape)}."
            )
        if isinstance(distances, Tensor) and distances.dtype != rows.dtype:
            raise ProtoPFaithError(
                f"Distances of {distances.dtype} cannot be read by weights of {rows.dtype}; convert them."
            )


def check_shaped(distances: Tensor) -> None:
    """Raises if distances are neither a tensor nor moments of one."""
    odd = isinstance(distances, Tensor) and (
        distances.dtype == torch.bool or distances.layout != torch.strided
    )
    if odd or not hasattr(distances, "shape") or hasattr(distances, "__array_interface__"):
        raise ProtoPFaithError(f"Distances are a tensor of floats, not {shown(distances)}.")


def check_layers(layers: Sequence[int | str]) -> None:
    """Raises if the layers of Z are no list of channels and activations."""
    known = isinstance(layers, (list, tuple)) and all(
        isinstance(one, (int, str)) and not isinstance(one, bool) for one in layers
    )
    if not known:
        raise ProtoPFaithError(
            f"The layers must be a list of channels and activations, such as [1024, 'relu', 128, 'sigmoid'], "
            f"not {shown(layers)}."
        )


def named_classes(classes: int | Sequence[str], fewest: int = 2) -> tuple[str, ...]:
    """Names of classes, from their number or a list of them."""
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

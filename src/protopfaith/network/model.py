"""ProtoPNet: f = F o Q o Z o V."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from protopfaith.arguments import numbers_below, shown, whole_number
from protopfaith.dtypes import unrounded
from protopfaith.errors import ProtoPFaithError
from protopfaith.network.contract import FAMILIES, family_name
from protopfaith.network.layers import own_class_weights, similarity_function
from protopfaith.network.patches import MOST, PatchNetwork, check_shaped, named_classes


@FAMILIES.register("protopnet")
class ProtoPNet(PatchNetwork):
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

    fewest_classes = 2
    family: ClassVar[str] = "protopnet"
    header: ClassVar[dict[str, Any]] = {
        "prototypes_per_class": (int, list),
        "similarity": str,
        "epsilon": float,
    }

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
        names = named_classes(classes, self.fewest_classes)
        counts = _counts(prototypes_per_class, names)
        owners = torch.tensor([number for number, count in enumerate(counts) for _ in range(count)])
        super().__init__(
            encoder,
            names,
            owners,
            prototype_channels,
            in_channels=in_channels,
            activation=activation,
            layers=layers,
            weights=weights,
        )
        self.similarity = similarity
        self.epsilon = epsilon
        self.classifier = nn.Linear(len(owners), len(counts), bias=False)
        with torch.no_grad():
            self.classifier.weight.copy_(own_class_weights(owners, len(counts)))
        self._similarity = similarity_function(similarity, epsilon)

    def similarities(self, distances: Tensor) -> Tensor:
        """What F reads of distances of any shape: -s, or the log similarity."""
        check_shaped(distances)
        return self._similarity(distances)

    def readout(self) -> Tensor:
        """F's weights, (C, P): how similarities add up to logits."""
        return self.classifier.weight.detach()

    def logits(self, distances: Tensor, rows: Tensor | None = None) -> Tensor:
        """F on the similarities that belong to distances: (B, C), or (B, n) with `rows`.

        In float32, whatever the caller's number format: a logit is a small difference of large sums, and
        distances of dozens have two digits left in bfloat16.

        Args:
            distances: (B, P)
            rows: (n, P), in the place of F's weights
        """
        self._check_rows(distances, self.classifier.weight if rows is None else rows)
        with unrounded(self.prototypes.device.type):
            similarity = self.similarities(distances)
            return self.classifier(similarity) if rows is None else linear(similarity, rows)

    def keep(self, kept: Sequence[int]) -> None:
        """Forgets all other prototypes, in place.

        Args:
            kept: the numbers of those that stay, in their new order
        """
        kept = numbers_below(len(self.prototypes), kept, "The prototypes to keep")
        indices = torch.tensor(kept, dtype=torch.long, device=self.prototypes.device)
        self.prototypes = _selected(self.prototypes, indices, 0)
        self.prototype_classes = self.prototype_classes[kept]
        self.classifier.in_features = len(kept)
        self.classifier.weight = _selected(self.classifier.weight, indices, 1)
        self.sources = [self.sources[index] for index in kept]

    @property
    def config(self) -> dict[str, Any]:
        """What the constructor needs to build this network again, but for a module given as encoder."""
        counts = torch.bincount(self.prototype_classes, minlength=len(self.class_names)).tolist()
        special: dict[str, Any] = {"epsilon": self.epsilon, "layers": self.layers}
        if type(self) is not ProtoPNet:  # a family of somebody's own, which must come back as such
            special["family"] = family_name(type(self))
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


def _selected(parameter: Tensor, indices: Tensor, dim: int) -> nn.Parameter:
    return nn.Parameter(parameter.detach().index_select(dim, indices), parameter.requires_grad)


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

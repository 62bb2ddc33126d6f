"""XProtoNet (Kim et al., 2021): several findings, each with prototypes that look where they want to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from protopfaith.arguments import instance, numbers_below, plain_tensor, shown
from protopfaith.dtypes import unrounded
from protopfaith.errors import ProtoPFaithError
from protopfaith.network.contract import FAMILIES
from protopfaith.network.encoders import output_channels
from protopfaith.network.model import ProtoPNet
from protopfaith.network.outcome import Outcome

PRESENT, ABSENT = 1.0, -1.0
START = 4.0
"""F's weights at the start, of all prototypes for a finding together; minus that of those against it."""


class OccurrenceFeatures(nn.Module):
    """Z and where each prototype looks, both from V's map: 1x1 convolutions."""

    def __init__(self, in_channels: int, channels: int, prototypes: int):
        super().__init__()
        self.latent = _convolutions(in_channels, channels, channels)
        self.occurrence = _convolutions(in_channels, channels, prototypes)
        with torch.no_grad():  # every prototype starts by looking everywhere alike
            self.last.weight.mul_(0.1)

    @property
    def last(self) -> nn.Conv2d:
        """What has one output for each prototype."""
        last = self.occurrence[2]
        assert isinstance(last, nn.Conv2d)
        return last

    def forward(self, encoded: Tensor) -> tuple[Tensor, Tensor]:
        """Latent vectors (B, L, h, w) and occurrence maps (B, P, h, w), which are between 0 and 1."""
        return self.latent(encoded), self.occurrence(encoded).sigmoid()


def _convolutions(in_channels: int, channels: int, out_channels: int) -> nn.Sequential:
    layers = nn.Sequential(
        nn.Conv2d(in_channels, channels, kernel_size=1),
        nn.ReLU(),
        nn.Conv2d(channels, out_channels, kernel_size=1),
    )
    for convolution in (layers[0], layers[2]):
        nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")  # type: ignore[arg-type]
        nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
    return layers


def occurrence_pooling(latent: Tensor, occurrence: Tensor) -> Tensor:
    r"""What each prototype sees of an image: $\sum_u o_{ju} z_u$, scaled to length 1.

    In float32 (float64 stays float64), outside autocast: distances on the unit sphere show every rounding.

    Args:
        latent: z, (B, L, h, w)
        occurrence: o, (B, P, h, w), not negative

    Returns:
        (B, P, L)

    >>> occurrence_pooling(torch.ones(1, 4, 2, 2), torch.ones(1, 3, 2, 2)).tolist()[0][0]
    [0.5, 0.5, 0.5, 0.5]
    """
    for values, what in ((latent, "Latent vectors"), (occurrence, "Occurrence maps")):
        if not callable(getattr(values, "dim", None)) or values.dim() != 4:
            raise ProtoPFaithError(f"{what} must be a tensor of B x channels x h x w, not {shown(values)}.")
        if isinstance(values, Tensor):  # or its moments
            plain_tensor(values, what, "a tensor of B x channels x h x w")
    if latent.shape[0] != occurrence.shape[0] or latent.shape[2:] != occurrence.shape[2:]:
        raise ProtoPFaithError(
            f"Occurrence maps must have the images and the size of latent vectors {tuple(latent.shape)}, "
            f"not {tuple(occurrence.shape)}."
        )
    dtype = torch.promote_types(latent.dtype, torch.float32)
    with unrounded(latent.device.type):
        weights = occurrence.to(dtype).flatten(2)
        seen = torch.bmm(weights, latent.to(dtype).flatten(2).transpose(1, 2))
        return normalize(seen, dim=2, eps=torch.finfo(dtype).tiny)


@FAMILIES.register("xprotonet")
class XProtoNet(ProtoPNet):
    r"""Several findings in one image, each decided by prototypes of its own: XProtoNet.

    Prototype j has an occurrence map $o_j \ge 0$ that says where it looks, and sees the sum of all latent
    vectors weighted by it, scaled to length 1. Its distance $s_j = \|f_j - p_j\|^2$ is 2 - 2 cos. Of the
    prototypes of a finding one half stands for its presence and one for its absence: the finding's logit is
    $\sum_j a_j \cdot (-s_j)$ over both, with $a_j \ge 0$ for the first and $a_j \le 0$ for the second, and
    its probability the logit's sigmoid.

    Args:
        encoder: a name (see `protopfaith.network.build_encoder`) or a module that returns a feature map
        classes: the findings: their number or names
        prototypes_per_class: of each finding, at least two: one number, or one for each finding
        prototype_channels: L, the length of a prototype
        in_channels: of the images
        weights: for the encoder: None, "imagenet", or the path of a state dict
        activation: "unit", and nothing else
        similarity: "linear", and nothing else

    >>> model = XProtoNet("small", ["edema", "effusion"], prototypes_per_class=4, prototype_channels=16)
    >>> x = torch.zeros(3, 3, 96, 96)
    >>> model(x).shape, model.distances(x).shape, model.occurrence_maps(x).shape
    (torch.Size([3, 2]), torch.Size([3, 8]), torch.Size([3, 8, 12, 12]))
    >>> model.prototype_signs.tolist()
    [1.0, 1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0]
    """

    family: ClassVar[str] = "xprotonet"
    outcome: Outcome = "several"
    fewest_classes = 1
    prototype_signs: Tensor
    features: OccurrenceFeatures  # type: ignore[assignment]

    def __init__(
        self,
        encoder: str | nn.Module,
        classes: int | Sequence[str],
        prototypes_per_class: int | Sequence[int] = 4,
        prototype_channels: int = 128,
        *,
        in_channels: int = 3,
        weights: str | Path | None = None,
        activation: str = "unit",
        similarity: str = "linear",
    ):
        instance(activation, str, "The activation", "the name of one")
        instance(similarity, str, "The similarity", "the name of one")
        if (activation, similarity) != ("unit", "linear"):
            raise ProtoPFaithError(
                "An XProtoNet has the activation 'unit' and the similarity 'linear', but "
                f"{shown(activation)} and {shown(similarity)} were asked for; leave them out."
            )
        super().__init__(
            encoder,
            classes,
            prototypes_per_class,
            prototype_channels,
            in_channels=in_channels,
            activation="unit",
            weights=weights,
        )
        encoded = output_channels(self.encoder, in_channels, self.encoder_name)
        self.features = OccurrenceFeatures(encoded, prototype_channels, len(self.prototypes))
        self.register_buffer("prototype_signs", _signs(self.prototype_classes, len(self.class_names)))
        with torch.no_grad():
            self.classifier.weight.copy_(_first_weights(self.prototype_signs, self._own()))

    def seen(self, x: Tensor) -> Tensor:
        """What each prototype sees of images: (B, P, L), of length 1.

        Args:
            x: images (B, C, H, W), normalized
        """
        self._check(x)
        return occurrence_pooling(*self._features(self.encoder(x)))

    def occurrence_maps(self, x: Tensor) -> Tensor:
        """Where each prototype looks, between 0 and 1: (B, P, h, w). The network's own explanation.

        Args:
            x: images (B, C, H, W), normalized
        """
        self._check(x)
        return self._features(self.encoder(x))[1]

    def latent(self, x: Tensor) -> Tensor:
        """Z(V(x)): (B, L, h, w), of any length."""
        self._check(x)
        return self._features(self.encoder(x))[0]

    def distance_maps(self, x: Tensor) -> Tensor:
        """The distances as maps of one position, (B, P, 1, 1): a prototype looks at all of the image."""
        return self.distances(x)[:, :, None, None]

    def distances(self, x: Tensor) -> Tensor:
        """s, the squared distance of each prototype to what it sees: (B, P)."""
        self._check(x)
        return self.encoded_distances(self.encoder(x))

    def encoded_distances(self, encoded: Tensor) -> Tensor:
        """s from V(x), for callers who need both: (B, P)."""
        return self.seen_distances(occurrence_pooling(*self._features(encoded)))

    def seen_distances(self, seen: Tensor) -> Tensor:
        """s from what prototypes see: (B, P).

        Args:
            seen: of length 1 each, (B, P, L)
        """
        with unrounded(seen.device.type):
            return (seen - self.prototypes.to(seen.dtype)).square().sum(2)

    def readout(self) -> Tensor:
        """F's weights, (C, P): a finding reads its own prototypes alone."""
        return self._weights().detach()

    def logits(self, distances: Tensor, rows: Tensor | None = None) -> Tensor:
        """The findings' logits (B, C), from distances (B, P); with `rows` (n, P) in the place of F's weights
        (B, n)."""
        self._check_rows(distances, self.classifier.weight if rows is None else rows)
        with unrounded(self.prototypes.device.type):
            return linear(self.similarities(distances), self._weights() if rows is None else rows)

    @torch.no_grad()
    def settle_prototypes(self) -> None:
        """Puts prototypes back on the unit sphere; prototypes for a finding never speak against it, and those
        against it never for it."""
        super().settle_prototypes()
        if "prototype_signs" in self._buffers:  # not yet while it is built
            weight = self.classifier.weight
            weight.copy_((weight * self.prototype_signs).clamp_min(0) * self.prototype_signs * self._own())

    @property
    def config(self) -> dict[str, Any]:
        """What the constructor needs to build this network again, but for a module given as encoder."""
        return {**super().config, "family": self.family}

    def _features(self, encoded: Tensor) -> tuple[Tensor, Tensor]:
        if not isinstance(encoded, Tensor):
            raise ProtoPFaithError(
                "There is no moment rule for the pooling of an XProtoNet, whose weights depend on the image; "
                "choose a sampling estimator such as the default."
            )
        return self.features(encoded)

    def _own(self) -> Tensor:
        """(C, P): 1 where a prototype is a finding's own."""
        findings = torch.arange(len(self.class_names), device=self.prototype_classes.device)
        return (findings[:, None] == self.prototype_classes).float()

    def _weights(self) -> Tensor:
        return self.classifier.weight * self._own()

    def keep(self, kept: Sequence[int]) -> None:
        """Forgets all other prototypes, in place."""
        kept = numbers_below(len(self.prototypes), kept, "The prototypes to keep")
        super().keep(kept)
        indices = torch.tensor(kept, dtype=torch.long, device=self.prototypes.device)
        self.prototype_signs = self.prototype_signs[kept]
        last = self.features.last
        last.out_channels = len(kept)
        for name in ("weight", "bias"):
            part = getattr(last, name)
            setattr(last, name, nn.Parameter(part.detach().index_select(0, indices), part.requires_grad))


def _signs(owners: Tensor, findings: int) -> Tensor:
    """1 for the first half of the prototypes of each finding, -1 for the others."""
    signs = torch.empty(len(owners))
    for finding in range(findings):
        places = (owners == finding).nonzero().flatten()
        half = (len(places) + 1) // 2
        signs[places[:half]], signs[places[half:]] = PRESENT, ABSENT
    return signs


def _first_weights(signs: Tensor, own: Tensor) -> Tensor:
    """F at the start, (C, P): those for a finding, and those against it, have the same weight together."""
    alike = (signs[:, None] == signs).float()
    counts = ((own @ alike) * own).sum(0)  # prototypes of the same finding and sign
    return START * own * signs / counts

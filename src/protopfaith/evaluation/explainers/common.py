"""What every explainer takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Protocol

import torch
from torch import Tensor

from protopfaith.annotations import check_fields
from protopfaith.arguments import LARGEST_SEED, instance, numbers_below, shown, tensor
from protopfaith.errors import ProtoPFaithError
from protopfaith.evaluation.metrics.removal import region_sums
from protopfaith.network import (
    FusedProtoPNet,
    PatchNetwork,
    minimum_over_positions,
    squared_distances,
)
from protopfaith.registry import Registry, borrowed
from protopfaith.shapley import Attribution, Players
from protopfaith.shapley.estimation import MOST_EVALUATIONS


class DistanceModel(Protocol):
    """What is explained: a network, or one made from a network (see `evaluation.metrics.variants`)."""

    def distances(self, x: Tensor) -> Tensor:
        """(B, C, H, W) to (B, P)"""
        ...

    def distance_maps(self, x: Tensor) -> Tensor:
        """(B, C, H, W) to (B, P, h, w)"""
        ...

    @property
    def network(self) -> PatchNetwork:
        """The network inside."""
        ...


class Prepared:
    """A network as games play it: the same distances, by fused kernels where nothing else is asked for.

    Args:
        network: in evaluation mode; its weights must not change afterwards

    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", ["cat", "dog"], 2, 8).eval()
    >>> Prepared(model).distances(torch.zeros(1, 3, 32, 32)).shape
    torch.Size([1, 4])
    """

    def __init__(self, network: PatchNetwork):
        self.network, self.fused = network, FusedProtoPNet(network)

    def distances(self, x: Tensor) -> Tensor:
        """(B, C, H, W) to (B, P)"""
        return self.fused.distances(x)

    def distance_maps(self, x: Tensor) -> Tensor:
        """(B, C, H, W) to (B, P, h, w)"""
        return self.network.distance_maps(x)

    def occurrence_maps(self, x: Tensor) -> Tensor:
        """Where prototypes look, of a network that says so."""
        return occurrence_maps(self.network, x)


Explainable = PatchNetwork | DistanceModel


@dataclass(frozen=True)
class Options:
    """How explainers work; each takes what it needs.

    Args:
        players: the regions
        baseline: what stands where a region is absent
        budget: evaluations of the network for one image, for those that sample
        sizes: coalition sizes of DASP
        nodes: densities of the moment path
        path_steps: points on the path of integrated gradients
        samples: noisy images of SmoothGrad and GradientShap
        noise: smoothGrad's standard deviation, as a share of the image's range
        seed: of all random choices
        memory: bytes that a batch may take
        autocast: a number format for plain forward passes
        batch_size: images in a plain forward pass; as many as memory allows by default, measured for every
            game
        moment_batch: the same for moment passes, which need some ten times the memory

    >>> Options(Players.windows((32, 32), 8), budget=512)
    Options(Players(16 players (windows 8x8), 32 x 32 pixels), baseline 'zero', budget 512, seed 0)
    """

    players: Players
    baseline: str | float | Sequence[float] | Tensor = "zero"
    budget: int = field(default=2048, metadata={"at_least": 1, "at_most": MOST_EVALUATIONS})
    sizes: int = field(default=8, metadata={"at_least": 1, "at_most": 1_000_000})
    nodes: int = field(default=32, metadata={"at_least": 1, "at_most": 1_000_000})
    path_steps: int = field(default=64, metadata={"at_least": 1, "at_most": 1_000_000})
    samples: int = field(default=32, metadata={"at_least": 1, "at_most": 1_000_000})
    noise: float = field(default=0.15, metadata={"at_least": 0})
    seed: int = field(default=0, metadata={"at_least": 0, "at_most": LARGEST_SEED})
    memory: int | None = field(default=None, metadata={"at_least": 1})
    autocast: torch.dtype | None = None
    batch_size: int | None = field(default=None, metadata={"at_least": 1})
    moment_batch: int | None = field(default=None, metadata={"at_least": 1})

    def __post_init__(self) -> None:
        check_fields(self)

    def __repr__(self) -> str:
        baseline = "a tensor" if isinstance(self.baseline, Tensor) else repr(self.baseline)
        return f"Options({self.players!r}, baseline {baseline}, budget {self.budget:,}, seed {self.seed})"


@dataclass(frozen=True, eq=False)
class Explained:
    """Maps in the sign of similarity: warm is what makes the distance smaller.

    A map is a density: its sum over the pixels of a region is what the region gets.

    Args:
        maps: (outputs, H, W), float64, on the CPU
        shares: minus the map is meant as shares of s(image) - s(baseline); other maps have a scale of their
            own
        regions: where the map is constant; None if every pixel has its own value
        attribution: what it was made from, where the explainer has one

    >>> explained = Explained(torch.ones(1, 4, 4, dtype=torch.float64), shares=False)
    >>> explained.values(Players.windows((4, 4), 2)).tolist()
    [[4.0, 4.0, 4.0, 4.0]]
    """

    maps: Tensor
    shares: bool
    regions: Players | None = None
    attribution: Attribution | None = None

    def __repr__(self) -> str:
        outputs, height, width = self.maps.shape
        return f"Explained({outputs} maps of {height}x{width}{', shares' if self.shares else ''})"

    def values(self, players: Players) -> Tensor:
        """What every player gets, (outputs, n).

        Args:
            players: of the images that were explained
        """
        _check_players(players)
        tensor(self.maps, "Maps", "outputs x height x width", 3)
        return region_sums(self.maps, players)

    def standard_errors(self, players: Players) -> Tensor:
        """Of `values` for the players it was made with; zero where the explainer knows no error.

        Args:
            players: those it was made with; errors are zero for a different number of players
        """
        _check_players(players)
        known = self.attribution.standard_errors if self.attribution is not None else None
        if known is None or known.shape[1] != len(players):
            return torch.zeros(len(self.maps), len(players), dtype=torch.float64)
        return known.nan_to_num(nan=0.0)


def _check_players(players: Any) -> None:
    instance(players, Players, "The players", "Players")


ExplainerFunction = Callable[[Explainable, Tensor, Sequence[int], Options], Explained]


def explained_by(
    explainer: ExplainerFunction,
    model: Explainable,
    image: Tensor,
    prototypes: Sequence[int],
    options: Options,
) -> Explained:
    """What an explainer returns, which may be a function of the user's."""
    found = explainer(model, image, prototypes, options)
    return instance(found, Explained, "What an explainer returns", "Explained")


def check_subject(model: Any, image: Any, prototypes: Any, options: Any) -> list[int]:
    """Raises if an explainer cannot work with what it is given; the prototypes, as a list."""
    network_of(model)
    tensor(image, "The image", "channels x height x width", 3)
    if not image.is_floating_point() or not image.numel() or not bool(image.isfinite().all()):
        raise ProtoPFaithError("The image must be normalized: finite numbers of a float type.")
    instance(options, Options, "The options", "made by Options(...)")
    if tuple(image.shape[1:]) != options.players.image_size:
        raise ProtoPFaithError(
            f"The image is {image.shape[1]} x {image.shape[2]}, but the players of the options cover "
            f"{' x '.join(map(str, options.players.image_size))}; make them from this image's size."
        )
    return _chosen(model, prototypes)


def _chosen(model: Explainable, prototypes: Any) -> list[int]:
    """Their numbers; variants have distances of their own, such as sums of some."""
    own = isinstance(model, PatchNetwork | Prepared)
    count = len(network_of(model).prototypes) if own else MOST_OUTPUTS
    return numbers_below(count, prototypes, "The prototypes")


class Explainers(Registry[ExplainerFunction]):
    """Explainers by name, which look at what they are given first, and at what they give."""

    def register(self, name: str) -> Callable[[ExplainerFunction], ExplainerFunction]:
        """The function stays as it is; the registry's looks at its arguments and its result."""

        def add(function: ExplainerFunction) -> ExplainerFunction:
            @wraps(function)
            def checked(
                model: Explainable, image: Tensor, prototypes: Sequence[int], options: Options
            ) -> Explained:
                chosen = check_subject(model, image, prototypes, options)
                with borrowed(f"The explainer {name!r}", function):
                    found = function(model, image, chosen, options)
                return instance(found, Explained, f"What the explainer {name!r} gives", "an Explained")

            super(Explainers, self).register(name)(checked)
            return function

        return add


EXPLAINERS = Explainers("explainer")
"""Functions of (network, image C x H x W on its device, indices of prototypes, options)."""
MOST_OUTPUTS = 1_000_000  # of a variant of a network
CHECKS = ("reversed",)
"""Explainers that test the metrics."""


def default_explainers() -> list[str]:
    """All but those that are there to test the metrics.

    >>> from protopfaith.evaluation import default_explainers
    >>> "ours" in default_explainers(), "reversed" in default_explainers()
    (True, False)
    """
    return [name for name in EXPLAINERS if name not in CHECKS]


def network_of(model: Explainable) -> PatchNetwork:
    """The network itself, or the one that a variant is made from."""
    network = model if isinstance(model, PatchNetwork) else getattr(model, "network", None)
    if not isinstance(network, PatchNetwork):
        raise ProtoPFaithError(f"What is explained must be a prototype network, not {shown(model)}.")
    return network


def has_occurrence_maps(model: Explainable) -> bool:
    """Whether a network, or the one that a variant is made from, says itself where its prototypes look."""
    return hasattr(network_of(model), "occurrence_maps")


def takes_minima(network: PatchNetwork) -> bool:
    """Whether distances are those to the nearest latent patch, as most families have them: then some
    prototypes can be asked for alone."""
    kind = type(network)
    own = kind.distances is PatchNetwork.distances and kind.distance_maps is PatchNetwork.distance_maps
    return own and not has_occurrence_maps(network)


def occurrence_maps(model: Any, x: Tensor) -> Tensor:
    """Where prototypes look: (B, C, H, W) to (B, P, h, w)."""
    return model.occurrence_maps(x)


def selected_distances(model: Explainable, prototypes: Sequence[int]) -> Callable[[Tensor], Tensor]:
    """Images to the distances of some prototypes: (B, C, H, W) to (B, len(prototypes))."""
    prototypes = _chosen(model, prototypes)
    if isinstance(model, Prepared) and takes_minima(model.network):
        chosen_vectors = model.network.prototypes.detach()[prototypes]
        return lambda x: model.fused.distances(x, chosen_vectors)
    if isinstance(model, PatchNetwork) and takes_minima(model):
        vectors = model.prototypes.detach()[prototypes]  # the others cost time: there may be thousands
        return lambda x: minimum_over_positions(squared_distances(model.latent(x), vectors))
    chosen = torch.tensor(prototypes, device=network_of(model).prototypes.device)
    return lambda x: model.distances(x).index_select(1, chosen)


def density(values: Tensor, players: Players) -> Tensor:
    """Players' values (..., n) spread evenly over their pixels, (..., H, W): a pixel gets what its channels
    get together, so that a map's sum is that of the values."""
    _check_players(players)
    values = tensor(values, "The values of players", "a number for each", *range(1, 9))
    if values.shape[-1] != len(players):
        raise ProtoPFaithError(
            f"{len(players)} players need a value each, not {values.shape[-1]}; make them of these players."
        )
    spread = players.to_map(values / players.sizes.to(values.device))
    return spread if players.labels.dim() == 2 else spread.sum(-3)

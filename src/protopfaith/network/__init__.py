"""f = F o Q o Z o V: the prototype network, its encoders, distances and checkpoints."""

from protopfaith.network import moments as _moments  # noqa: F401  (registers the moment rules of Q)
from protopfaith.network.checkpoint import load, read_metadata, save
from protopfaith.network.contract import (
    FAMILIES,
    NO_CLASS,
    PrototypeNetwork,
    PrototypeSource,
    Route,
    Turn,
    adds_up,
    can_drop,
    check_contract,
    class_of,
    route_of,
    weights_of,
)
from protopfaith.network.distances import minimum_over_positions, squared_distances, unit_vectors
from protopfaith.network.encoders import ENCODERS, build_encoder, output_channels
from protopfaith.network.fused import FusedProtoPNet
from protopfaith.network.layers import ACTIVATIONS, SIMILARITIES
from protopfaith.network.model import ProtoPNet
from protopfaith.network.outcome import Outcome, outcome_of, probabilities
from protopfaith.network.patches import PatchNetwork
from protopfaith.network.prototypes import (
    DistinctPrototypes,
    distinct_prototypes,
    duplicate_groups,
    equality_tolerance,
    prototype_spread,
    prune,
)
from protopfaith.network.tree import ProtoTree
from protopfaith.network.xprotonet import XProtoNet, occurrence_pooling

__all__ = [
    "ACTIVATIONS",
    "ENCODERS",
    "FAMILIES",
    "NO_CLASS",
    "SIMILARITIES",
    "DistinctPrototypes",
    "FusedProtoPNet",
    "Outcome",
    "PatchNetwork",
    "ProtoPNet",
    "ProtoTree",
    "PrototypeNetwork",
    "PrototypeSource",
    "Route",
    "Turn",
    "XProtoNet",
    "adds_up",
    "build_encoder",
    "can_drop",
    "check_contract",
    "class_of",
    "distinct_prototypes",
    "duplicate_groups",
    "equality_tolerance",
    "load",
    "minimum_over_positions",
    "occurrence_pooling",
    "outcome_of",
    "output_channels",
    "probabilities",
    "prototype_spread",
    "prune",
    "read_metadata",
    "route_of",
    "save",
    "squared_distances",
    "unit_vectors",
    "weights_of",
]

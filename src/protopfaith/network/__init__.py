"""f = F o Q o Z o V: the prototype network, its encoders, distances and checkpoints."""

from protopfaith.network.checkpoint import load, load_into, save
from protopfaith.network.distances import minimum_over_positions, squared_distances
from protopfaith.network.encoders import ENCODERS, build_encoder, output_channels
from protopfaith.network.layers import ACTIVATIONS, SIMILARITIES
from protopfaith.network.model import PrototypeSource, ProtoPNet

__all__ = [
    "ACTIVATIONS",
    "ENCODERS",
    "SIMILARITIES",
    "ProtoPNet",
    "PrototypeSource",
    "build_encoder",
    "load",
    "load_into",
    "minimum_over_positions",
    "output_channels",
    "save",
    "squared_distances",
]

"""How a ProtoTree (Nauta et al., 2021) is trained, started and pruned."""

from protopfaith.training.families.prototree.trainer import TreeTrainer

__all__ = ["TreeTrainer"]

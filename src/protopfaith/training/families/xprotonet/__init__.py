"""How an XProtoNet (Kim et al., 2021) is trained, started and projected."""

from protopfaith.training.families.xprotonet.trainer import XProtoNetTrainer

__all__ = ["XProtoNetTrainer"]

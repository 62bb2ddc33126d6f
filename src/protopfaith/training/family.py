"""The registry of trainers, by the names of the families of networks that they train."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protopfaith.annotations import check_arguments
from protopfaith.errors import ProtoPFaithError
from protopfaith.network.contract import FAMILIES, family_name
from protopfaith.registry import Registry

if TYPE_CHECKING:
    from protopfaith.training.loop import Trainer

TRAINERS: Registry[type[Trainer]] = Registry("trainer of a family")
"""Trainers by the name of the family that they train. A family without one is trained as the one that its
class is made from."""


def trainer_of(kind: type) -> type[Trainer]:
    """The trainer that knows a class of networks.

    Args:
        kind: the class, as `type(model)`

    Raises:
        ProtoPFaithError: if neither it nor a class that it is made from has one

    >>> from protopfaith.network import XProtoNet
    >>> trainer_of(XProtoNet).__name__
    'XProtoNetTrainer'
    """
    check_arguments(trainer_of, locals())
    from protopfaith.training import families, loop  # noqa: F401  (they register themselves, and import this)

    for ancestor in kind.__mro__:
        name = family_name(ancestor)
        if name is not None and name in TRAINERS:
            return TRAINERS[name]
    raise ProtoPFaithError(
        f"Nobody knows how to train a {kind.__name__}: register a trainer of its family, as in "
        f'@TRAINERS.register("{family_name(kind) or "name"}").'
    )


def trainer_named(family: str) -> type[Trainer]:
    """The trainer that knows a family.

    Args:
        family: one of `protopfaith.network.FAMILIES`

    >>> trainer_named("prototree").last_part
    'leaves'
    """
    check_arguments(trainer_named, locals())
    kind: Any = FAMILIES[family]
    if not isinstance(kind, type):
        raise ProtoPFaithError(
            f"The family {family!r} is a function, but training needs a class; register the class itself."
        )
    return trainer_of(kind)

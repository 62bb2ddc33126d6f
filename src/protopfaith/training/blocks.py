"""An encoder as a row of blocks, first to last, so that early ones can learn more slowly than late ones."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


def encoder_blocks(encoder: nn.Module) -> list[list[nn.Parameter]]:
    """The trainable weights of each block, in the order in which the encoder's modules were made.

    A block is what containers hold: a residual block, or a single layer between them. Weights that belong
    to no module inside (a transformer's positions) go with the first block.

    Args:
        encoder: any module

    >>> len(encoder_blocks(nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU(), nn.Conv2d(4, 4, 1))))
    2
    """
    seen: set[int] = set()
    blocks = []
    for module in _blocks(encoder):
        new = [parameter for parameter in module.parameters() if id(parameter) not in seen]
        seen |= {id(parameter) for parameter in new}
        if new:
            blocks.append(new)
    rest = [parameter for parameter in encoder.parameters() if id(parameter) not in seen]
    if not blocks:
        return [rest]
    return [rest + blocks[0], *blocks[1:]]


def _blocks(module: nn.Module) -> Iterator[nn.Module]:
    children = [child for child in module.children() if any(True for _ in child.parameters())]
    for child in children:
        # A wrapper around the whole is looked into as a container is.
        if isinstance(child, CONTAINERS) or len(children) == 1:
            yield from _blocks(child) if any(True for _ in child.children()) else [child]
        else:
            yield child


def depth_shares(count: int, first: float) -> list[float]:
    """The share of the learning rate of each of `count` blocks: `first` for the first, 1 for the last, in
    equal ratios between.

    >>> depth_shares(3, 0.01)
    [0.01, 0.1, 1.0]
    """
    return [first ** (1 - index / max(count - 1, 1)) if count > 1 else 1.0 for index in range(count)]

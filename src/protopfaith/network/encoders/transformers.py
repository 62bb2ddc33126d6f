"""Vision transformers as encoders: their tokens, put back where they come from, are a feature map."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from protopfaith.network.encoders.adapt import Wrapped


class TokenMap(Wrapped):
    """The feature map of torchvision's vision transformer: one position for each patch of the image.

    The class token takes part in attention, and is left out of the map. Positions are interpolated (bicubic)
    where an image has another number of patches than the network was made for.
    """

    def __init__(self, network: Any):
        network.heads = nn.Identity()  # what comes after the tokens
        super().__init__(network)

    def forward(self, x: Tensor) -> Tensor:
        network: Any = self.network
        patches = network.conv_proj(x)
        height, width = patches.shape[-2:]
        tokens = patches.flatten(2).transpose(1, 2)
        first = network.class_token.expand(len(tokens), -1, -1)
        encoder = network.encoder
        tokens = torch.cat([first, tokens], 1) + resized_positions(encoder.pos_embedding, (height, width), 1)
        tokens = encoder.ln(encoder.layers(encoder.dropout(tokens)))
        return tokens_to_map(tokens, (height, width))


def resized_positions(positions: Tensor, size: tuple[int, int], others: int) -> Tensor:
    """Positions (1, others + n, D) of a square of n patches, for another number of patches.

    Args:
        positions: as they were learned
        size: patches along height and width
        others: tokens at the front that belong to no patch; theirs stay

    >>> resized_positions(torch.zeros(1, 1 + 9, 4), (2, 5), 1).shape
    torch.Size([1, 11, 4])
    """
    front, patches = positions[:, :others], positions[:, others:]
    side = round(patches.shape[1] ** 0.5)
    if (side, side) == tuple(size):
        return positions
    grid = patches.reshape(1, side, side, -1).permute(0, 3, 1, 2)
    grid = F.interpolate(grid.float(), size=tuple(size), mode="bicubic", align_corners=False)
    return torch.cat([front, grid.flatten(2).transpose(1, 2).to(front.dtype)], 1)


def tokens_to_map(tokens: Tensor, size: tuple[int, int]) -> Tensor:
    """Tokens (B, others + height * width, D), row after row, as a map (B, D, height, width); those at the
    front that belong to no patch (class, registers) are left out.

    Args:
        tokens: what a transformer gives
        size: patches along height and width

    >>> tokens_to_map(torch.zeros(2, 1 + 4 + 12, 8), (3, 4)).shape
    torch.Size([2, 8, 3, 4])
    """
    height, width = size
    patches = tokens[:, tokens.shape[1] - height * width :]
    return patches.transpose(1, 2).reshape(len(tokens), -1, height, width)


def patch_grid(network: nn.Module, image: tuple[int, int]) -> tuple[int, int] | None:
    """How many patches timm's network cuts an image of (height, width) into; None where it does not say."""
    embed = getattr(network, "patch_embed", None)
    if embed is not None and hasattr(embed, "dynamic_feat_size"):
        height, width = embed.dynamic_feat_size(image)
        return int(height), int(width)
    patch = getattr(embed, "patch_size", None)
    if isinstance(patch, tuple) and len(patch) == 2:
        return image[0] // patch[0], image[1] // patch[1]
    return None

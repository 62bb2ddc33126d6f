"""Q: squared distances between prototypes and latent vectors, and their minimum over positions."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear, normalize
from torch.overrides import handle_torch_function, has_torch_function, has_torch_function_unary

from protopfaith.arguments import odd_kind, shown, tensor
from protopfaith.dtypes import unrounded
from protopfaith.errors import ProtoPFaithError


def squared_distances(z: Tensor, prototypes: Tensor) -> Tensor:
    r"""The map of squared distances of every prototype: $\|z_{bhw} - p_j\|^2$.

    `z` is (B, L, h, w), `prototypes` (P, L); the result is (B, P, h, w) and never negative. It is
    expanded into $|z|^2 - 2 p z + |p|^2$, whose middle term is a 1x1 convolution, so no
    B x P x L x h x w tensor arises. Distances do not change when both sides are shifted: shifting by the mean
    prototype first keeps the three terms small, hence the rounding error of their sum (some 1e-7 of them;
    below 1e-6 * L at distance zero for latent values in [0, 1]). Computed in float32 (float64 stays float64),
    outside autocast and TF32; what rounding still leaves below zero is clamped, with gradient zero there.

    Dispatches `__torch_function__`, so a type other than Tensor can bring a rule of its own.

    Args:
        z: latent vectors, (B, L, h, w)
        prototypes: (P, L)

    >>> squared_distances(torch.zeros(1, 3, 2, 2), torch.ones(5, 3)).shape
    torch.Size([1, 5, 2, 2])
    """
    if has_torch_function((z, prototypes)):
        return handle_torch_function(squared_distances, (z, prototypes), z, prototypes)
    tensor(z, "Latent vectors", "B x L x height x width", 4)
    if tensor(prototypes, "Prototypes", "P x L", 2).shape[1] != z.shape[1]:
        raise ProtoPFaithError(
            f"Latent vectors of {z.shape[1]} channels have no distance to prototypes of "
            f"{prototypes.shape[1]}; give both the same."
        )
    dtype = torch.promote_types(torch.promote_types(z.dtype, prototypes.dtype), torch.float32)
    with unrounded(z.device.type):
        vectors = z.to(dtype).flatten(2).transpose(1, 2)  # (B, h*w, L)
        prototypes = prototypes.to(dtype)
        center = prototypes.detach().mean(0)
        vectors, prototypes = vectors - center, prototypes - center
        distances = linear(vectors, -2 * prototypes, prototypes.square().sum(-1))
        # In place: one map of this size is enough, and with many prototypes it is the largest tensor of all.
        distances = distances.add_(vectors.square().sum(-1, keepdim=True)).relu_()
    return distances.transpose(1, 2).unflatten(2, z.shape[2:])


def unit_vectors(z: Tensor) -> Tensor:
    r"""The direction of every latent vector: $z_{bhw} / \|z_{bhw}\|$, of length 1, or zero where z is zero.

    Computed in float32 (float64 stays float64), outside autocast: a length that is off by bfloat16's
    rounding would show in every distance. Dispatches `__torch_function__`.

    Args:
        z: B x L x h x w

    >>> unit_vectors(torch.tensor([[[[3.0]], [[4.0]]]])).flatten().tolist()
    [0.6000000238418579, 0.800000011920929]
    """
    if has_torch_function_unary(z):
        return handle_torch_function(unit_vectors, (z,), z)
    if not isinstance(z, Tensor) or z.dim() < 2 or odd_kind(z):
        raise ProtoPFaithError(f"Latent vectors must be a tensor of B x L x h x w, not {shown(z)}.")
    with unrounded(z.device.type):
        return normalize(z.to(torch.promote_types(z.dtype, torch.float32)), dim=1)


def minimum_over_positions(maps: Tensor) -> Tensor:
    r"""The distance of each prototype to the image, $s_j = \min_{hw} d_{jhw}$: (B, P, h, w) to (B, P).

    Dispatches `__torch_function__`. Not-a-number anywhere in a map gives not-a-number, so it stays visible.
    The gradient goes to one position, also where several have the same distance.

    Args:
        maps: B x P x h x w

    >>> minimum_over_positions(torch.tensor([[[[3.0, 1.0], [2.0, 5.0]]]])).tolist()
    [[1.0]]
    """
    if has_torch_function_unary(maps):
        return handle_torch_function(minimum_over_positions, (maps,), maps)
    tensor(maps, "Distance maps", "B x P x height x width", 4)
    if not maps.shape[2] * maps.shape[3]:
        raise ProtoPFaithError(f"Distance maps of shape {tuple(maps.shape)} have no position to be near to.")
    return maps.flatten(2).min(dim=2).values  # not amin: its backward pass needs three more maps

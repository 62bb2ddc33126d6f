"""The network as games play it: the same distances, faster.

A game asks for thousands of forward passes and no gradients. For that batch norms are folded into the
convolutions before them, and each convolution, what is added to it and the ReLU after it become one kernel of
cuDNN (on a GPU) or oneDNN (on a CPU): between them nothing is written to memory. Weights are stored in
the number format of the game instead of being cast for every batch. Nothing is compiled, so it pays from
the first batch.
"""

from __future__ import annotations

import copy
import logging
import operator
from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn.functional import relu
from torch.nn.utils.fusion import fuse_conv_bn_eval

from protopfaith.network.contract import PrototypeNetwork, check_contract
from protopfaith.network.distances import minimum_over_positions, squared_distances
from protopfaith.network.tracing import trace

SAME = 1e-4  # of the largest distance: what folding may change in float32
REDUCED = 1e-3  # beyond the rounding of the plain network in the same number format
logger = logging.getLogger("protopfaith")

Latent = Callable[[Tensor], Tensor]


class FusedProtoPNet:
    """A ProtoPNet in evaluation mode whose distances are computed by fused kernels where that is possible.

    Each number format is prepared when it is first asked for, and compared with the network itself; where an
    encoder cannot be traced, a kernel is missing or the numbers differ, the network itself answers. So
    do random variables and whatever needs gradients. The weights must not change afterwards.

    Args:
        model: the network, in evaluation mode

    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", ["cat", "dog"], 2, 8).eval()
    >>> x = torch.rand(2, 3, 32, 32)
    >>> with torch.no_grad():
    ...     torch.allclose(FusedProtoPNet(model).distances(x), model.distances(x), atol=1e-5)
    True
    """

    def __init__(self, model: PrototypeNetwork):
        check_contract(model)
        self.model: Any = model  # families without encoder and features of that name answer themselves
        self.prototypes = model.prototypes
        self.batch_sizes: dict[Hashable, int] = {}
        """Images per pass that games have measured, by what it depends on."""
        self._prepared: dict[torch.dtype, Latent | None] = {}
        self._pools = hasattr(model, "occurrence_maps")

    def distances(self, x: Tensor, vectors: Tensor | None = None) -> Tensor:
        """The distances of images (B, C, H, W): (B, P), in the number format of autocast where it is on.

        Args:
            x: images, or random variables
            vectors: (p, D), to which distances are taken instead of to all prototypes
        """
        if not isinstance(x, Tensor) or torch.is_grad_enabled() or self.model.training:
            return self._plain(x, vectors)
        kind = x.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else torch.float32
        if dtype not in self._prepared:
            self._prepared[dtype] = self._prepare(dtype, x)
        latent = self._prepared[dtype]
        if latent is None:  # channels last: the same numbers, faster on a GPU than rows of pixels
            x = x.contiguous(memory_format=torch.channels_last) if x.is_cuda else x
            return self._plain(x, vectors)
        return self._distances(latent, x, dtype, vectors)

    def logits(self, distances: Tensor, rows: Tensor | None = None) -> Tensor:
        """As the network's own.

        Args:
            distances: (B, P)
            rows: (n, P), in the place of F's weights
        """
        return self.model.logits(distances, rows)

    def _plain(self, x: Tensor, vectors: Tensor | None) -> Tensor:
        """By the network itself."""
        if vectors is None:
            return self.model.distances(x)
        assert not self._pools, "prototypes of such a network see different things, each its own"
        return minimum_over_positions(squared_distances(self.model.latent(x), vectors))

    def _distances(
        self, latent: Latent, x: Tensor, dtype: torch.dtype, vectors: Tensor | None = None
    ) -> Tensor:
        with torch.autocast(x.device.type, enabled=False):
            z = latent(x.to(dtype, memory_format=torch.channels_last)).float()
            if self._pools:
                assert vectors is None, "prototypes of such a network see different things, each its own"
                return self.model.encoded_distances(z)
            found = squared_distances(z, self.prototypes if vectors is None else vectors)
            return minimum_over_positions(found)

    def _prepare(self, dtype: torch.dtype, x: Tensor) -> Latent | None:
        """Z(V(x)) in fused kernels (V(x) of a network that pools), or None where the network itself must
        answer."""
        try:
            parts = [self.model.encoder] if self._pools else [self.model.encoder, self.model.features]
            latent = fuse(nn.Sequential(*parts), x.device, dtype)
            return latent if self._agrees(latent, x[:2], dtype) else None
        # Tracing runs the encoder's own code, and kernels differ by device and version.
        except Exception as error:
            logger.debug("The network is not fused (%s: %s).", type(error).__name__, error)
            return None

    def _agrees(self, latent: Latent, x: Tensor, dtype: torch.dtype) -> bool:
        """Whether two images, and noise, have the network's own distances up to rounding."""
        generator = torch.Generator(x.device).manual_seed(0)  # the caller's random numbers stay as they were
        x = torch.cat([x, torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)])
        fused = self._distances(latent, x, dtype)
        plain = self.model.distances(x)
        with torch.autocast(x.device.type, enabled=False):
            exact = self.model.distances(x)
        size = float(exact.abs().max())
        allowed = SAME * size
        if dtype != torch.float32:
            allowed = REDUCED * size + 2 * float((plain - exact).abs().max())
        return float((fused - exact).abs().max()) <= allowed


def fuse(module: nn.Module, device: torch.device | str, dtype: torch.dtype = torch.float32) -> fx.GraphModule:
    """A copy of a network in evaluation mode whose convolutions are fused with what follows them.

    Args:
        module: anything that `torch.fx` can trace
        device: whose kernels it uses
        dtype: of weights and images
    """
    traced = trace(copy.deepcopy(module).eval())
    fold_batch_norms(traced)
    traced = traced.to(device, dtype).to(memory_format=torch.channels_last)
    fuse_convolutions(traced, _cudnn if torch.device(device).type == "cuda" else _onednn)
    return traced


def fold_batch_norms(traced: fx.GraphModule) -> None:
    """Puts every batch norm that directly follows a convolution into the convolution's weights."""
    for node in list(traced.graph.nodes):
        norm = _module(traced, node)
        if not isinstance(norm, nn.BatchNorm2d):
            continue
        before = node.args[0]
        convolution = _module(traced, before)
        if not isinstance(convolution, nn.Conv2d):
            continue
        if len(before.users) > 1 or _uses(traced, before.target) > 1 or norm.running_mean is None:
            continue
        owner, _, name = before.target.rpartition(".")
        setattr(traced.get_submodule(owner), name, fuse_conv_bn_eval(convolution, norm))
        node.replace_all_uses_with(before)
        traced.graph.erase_node(node)
    traced.recompile()


Kernel = Callable[[fx.Graph, Any, tuple[Any, Any, Any], Any], fx.Node]


def fuse_convolutions(traced: fx.GraphModule, kernel: Kernel) -> None:
    """Makes one call of: convolution, ReLU; or convolution, addition of another branch, ReLU."""
    for node in list(traced.graph.nodes):
        if not _is_relu(traced, node):
            continue
        before, other = node.args[0], None
        if _is_addition(before):
            one, two = before.args
            # Where both are convolutions the later one is fused: the other must be there already.
            before, other = (two, one) if _is_convolution(traced, two) else (one, two)
        if not _is_convolution(traced, before):
            continue
        graph, convolution = traced.graph, traced.get_submodule(before.target)
        with graph.inserting_before(node):
            weight = graph.get_attr(f"{before.target}.weight")
            bias = None if convolution.bias is None else graph.get_attr(f"{before.target}.bias")
            fused = kernel(graph, convolution, (before.args[0], weight, bias), other)
        node.replace_all_uses_with(fused)
    traced.graph.eliminate_dead_code()
    traced.recompile()


def _cudnn(graph: fx.Graph, conv: Any, operands: tuple[Any, Any, Any], other: Any) -> fx.Node:
    x, weight, bias = operands
    shape = (list(conv.stride), list(conv.padding), list(conv.dilation), conv.groups)
    if other is None:
        return graph.call_function(torch.ops.aten.cudnn_convolution_relu.default, (x, weight, bias, *shape))
    arguments = (x, weight, other, 1.0, bias, *shape)
    return graph.call_function(torch.ops.aten.cudnn_convolution_add_relu.default, arguments)


def _onednn(graph: fx.Graph, conv: Any, operands: tuple[Any, Any, Any], other: Any) -> fx.Node:
    x, weight, bias = operands
    shape = (list(conv.padding), list(conv.stride), list(conv.dilation), conv.groups)
    pointwise = torch.ops.mkldnn._convolution_pointwise
    if other is None:
        return graph.call_function(pointwise.default, (x, weight, bias, *shape, "relu", [], ""))
    arguments: tuple[Any, ...] = (x, other, weight, bias, *shape, "add", 1.0, "relu", [], "")
    return graph.call_function(pointwise.binary, arguments)


def _module(traced: fx.GraphModule, node: Any) -> nn.Module | None:
    """The module that a node calls, if it calls one."""
    if not isinstance(node, fx.Node) or node.op != "call_module":
        return None
    return traced.get_submodule(str(node.target))


def _uses(traced: fx.GraphModule, target: Any) -> int:
    return sum(node.op == "call_module" and node.target == target for node in traced.graph.nodes)


def _is_relu(traced: fx.GraphModule, node: fx.Node) -> bool:
    called = _module(traced, node)
    return isinstance(called, nn.ReLU) or node.target in (relu, torch.relu, "relu", "relu_")


def _is_addition(node: Any) -> bool:
    """Of two tensors that nothing else reads."""
    return (
        isinstance(node, fx.Node)
        and node.target in (operator.add, operator.iadd, torch.add)
        and len(node.args) == 2
        and not node.kwargs
        and all(isinstance(one, fx.Node) for one in node.args)
        and len(node.users) == 1
    )


def _is_convolution(traced: fx.GraphModule, node: Any) -> bool:
    """One whose result is read by nothing but what it is fused with, and whose padding kernels know."""
    called = _module(traced, node)
    return (
        isinstance(called, nn.Conv2d)
        and called.padding_mode == "zeros"
        and not isinstance(called.padding, str)
        and len(node.users) == 1
    )

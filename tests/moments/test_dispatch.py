"""Every rule: without variance it is the function itself. A new one is tested by being there."""

import pytest
import torch

from protopfaith.moments import RULES, Gaussian
from protopfaith.moments.dispatch import name_of

IMAGE = torch.rand(2, 4, 6, 6, generator=torch.Generator().manual_seed(0)) + 0.1
OTHER = torch.rand(2, 4, 6, 6, generator=torch.Generator().manual_seed(1)) + 0.1
TWO = "maximum minimum fmax fmin add sub subtract rsub mul multiply div divide truedivide iadd isub imul idiv"
SAME_SHAPE = "reshapeas viewas expandas typeas"
# What a function takes besides its random variable, by its name without underscores. Not listed: nothing.
ARGUMENTS = {
    **dict.fromkeys(f"{TWO} radd rsub rmul truediv {SAME_SHAPE}".split(), (OTHER,)),
    "flip": ([0, 1],),
    "clamp": (0.2, 0.7),
    "clip": (0.2, 0.7),
    "clampmin": (0.3,),
    "clampmax": (0.3,),
    "pow": (2,),
    "amax": (1,),
    "amin": (1,),
    "linear": (torch.ones(3, 6),),
    "layernorm": ((6, 6),),
    "groupnorm": (2,),
    "batchnorm": (torch.zeros(4), torch.ones(4)),
    "reshape": (2, -1),
    "view": (2, -1),
    "unflatten": (1, (2, 2)),
    "unsqueeze": (0,),
    "permute": (0, 2, 3, 1),
    "transpose": (0, 1),
    "swapaxes": (0, 1),
    "movedim": (0, 1),
    "moveaxis": (0, 1),
    "roll": (1,),
    "channelshuffle": (2,),
    "getitem": (0,),
    "select": (0, 1),
    "narrow": (1, 0, 2),
    "indexselect": (1, torch.tensor([2, 0])),
    "chunk": (2,),
    "split": (1,),
    "tensorsplit": (2,),
    "expand": (2, 4, 6, 6),
    "broadcastto": ((2, 4, 6, 6),),
    "repeat": (1, 2, 1, 1),
    "tile": ((2,),),
    "pixelshuffle": (2,),
    "pixelunshuffle": (2,),
    "to": (torch.float64,),
    "pad": ((1, 1),),
    "maxpool": (2,),
    "avgpool": (2,),
    "adaptivemaxpool": (1,),
    "adaptiveavgpool": (2,),
}
SHAPES = {"1d": (2, 4, 6), "2d": (2, 4, 6, 6), "3d": (2, 4, 6, 6, 6)}
JOINING = {"cat", "concat", "concatenate", "stack", "hstack", "vstack"}
DROPPING = {"dropout", "alphadropout", "featurealphadropout", "featuredropout"}


def call(function, x):  # noqa: PLR0911
    name = function.__name__.replace("_", "")
    if name_of(function).startswith("torch.Tensor."):  # a method, which only tensors can be passed to
        method = name_of(function).rpartition(".")[2]
        method = method if hasattr(Gaussian, method) else function.__name__
        function = lambda x, *arguments: getattr(x, method)(*arguments)  # noqa: E731
    short = name.removesuffix(name[-2:]) if name[-2:] in SHAPES else name
    if short in JOINING:
        return function([x, x])
    if short in DROPPING:
        return function(x, 0.5, False)
    if short.startswith("conv"):
        return function(x, torch.ones(4, 4, *(3,) * (x.dim() - 2)))
    if name == "permute" and function is torch.permute:
        return function(x, (0, 2, 3, 1))
    if short in ("reshape", "view") and function is torch.reshape:
        return function(x, (2, -1))
    if short == "t":
        return function(Gaussian(x.mean[0, 0], x.variance[0, 0]) if isinstance(x, Gaussian) else x[0, 0])
    if function is torch.batch_norm:
        return function(x, None, None, torch.zeros(4), torch.ones(4), False, 0.1, 1e-5, True)
    return function(x, *ARGUMENTS.get(short, ()))


# Other packages (the network's distances) register and test rules of their own.
OURS = [function for function, rule in RULES.items() if rule.__module__.startswith("protopfaith.moments.")]


@pytest.mark.parametrize("function", OURS, ids=name_of)
def test_without_variance_every_rule_is_its_function(function):
    if function.__name__ == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    dimensions = function.__name__.rstrip("_")[-2:]
    x = torch.rand(SHAPES.get(dimensions, (2, 4, 6, 6)), generator=torch.Generator().manual_seed(0)) + 0.1
    expected, found = call(function, x.clone()), call(function, Gaussian(x.clone(), torch.zeros_like(x)))
    pairs = zip(expected, found, strict=True) if isinstance(expected, tuple) else [(expected, found)]
    for plain, moments in pairs:
        if not isinstance(moments, Gaussian):
            assert moments == plain
            continue
        assert torch.allclose(moments.mean, plain.to(moments.mean), rtol=1e-3, atol=1e-3)
        assert float(moments.variance.float().abs().max()) < 1e-3

import pytest
import torch
from torch.nn import functional as F

from protopfaith.errors import ProtoPFaithError
from protopfaith.moments import Gaussian
from tests.moments.reference import random_gaussian

MOVES = {
    "view": lambda x: x.view(2, -1),
    "view with size": lambda x: x.view(x.size(0), -1),
    "reshape": lambda x: torch.reshape(x, (6, 20)),
    "flatten": lambda x: torch.flatten(x, 1),
    "flatten module": torch.nn.Flatten(),
    "unflatten": lambda x: x.unflatten(2, (2, 2)),
    "permute": lambda x: x.permute(0, 2, 3, 1),
    "transpose": lambda x: x.transpose(1, 2),
    "unsqueeze": lambda x: torch.unsqueeze(x, 1),
    "squeeze": lambda x: x[:1].squeeze(),
    "index": lambda x: x[:, 0],
    "index list": lambda x: x[:, [2, 0]],
    "slice": lambda x: x[..., 1:-1, ::2],
    "none": lambda x: x[:, None],
    "ellipsis": lambda x: x[..., 0],
    "select": lambda x: x.select(1, 2),
    "narrow": lambda x: torch.narrow(x, 1, 0, 2),
    "index_select": lambda x: torch.index_select(x, 1, torch.tensor([1, 1])),
    "chunk": lambda x: torch.chunk(x, 2, 3)[1],
    "split": lambda x: x.split([1, 2], 1)[1],
    "unbind": lambda x: x.unbind(1)[0],
    "iterate": lambda x: list(x)[1],
    "expand": lambda x: x[:, :, :1].expand(-1, -1, 4, -1),
    "expand as": lambda x: x[:, :, :1].expand_as(x),
    "expand as a tensor": lambda x: x[:, :, :1].expand_as(torch.zeros(2, 3, 4, 5)),
    "reshape as": lambda x: x.reshape_as(other=x.flatten(1)),
    "type as": lambda x: x.type_as(x),
    "repeat": lambda x: x.repeat(1, 2, 1, 1),
    "cat": lambda x: torch.cat([x, x], 1),
    "cat with constant": lambda x: torch.cat((x, torch.zeros(2, 1, 4, 5)), dim=1),
    "stack": lambda x: torch.stack([x, x], dim=2),
    "pad": lambda x: F.pad(x, (1, 2, 0, 1)),
    "pad reflect": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "pad module": torch.nn.ZeroPad2d(1),
    "contiguous": lambda x: x.transpose(2, 3).contiguous(),
    "clone": lambda x: x.clone(),
    "detach": lambda x: x.detach(),
    "to": lambda x: x.to(torch.float64),
    "double": lambda x: x.double(),
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "flip": lambda x: torch.flip(x, [3]),
    "dropout": lambda x: F.dropout(x, 0.5, training=False),
    "dropout module": torch.nn.Dropout2d(0.3).eval(),
    "identity": torch.nn.Identity(),
}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("factors", [False, True])
def test_mean_variance_and_factors_move_alike(name, factors):
    x = random_gaussian(2, 3, 4, 5)
    common = (
        torch.randn(2, 2, 3, 4, 5, generator=torch.Generator().manual_seed(0)) * 1e-3 if factors else None
    )
    result = MOVES[name](Gaussian(x.mean, x.variance, common))
    assert torch.equal(result.mean, MOVES[name](x.moments[0]))
    assert torch.equal(result.variance, MOVES[name](x.variance))
    assert result.shape == result.mean.shape
    if factors:
        assert torch.equal(result.factors, torch.stack([MOVES[name](factor) for factor in common]))


def test_padding_by_a_value_has_no_variance():
    result = F.pad(random_gaussian(1, 2, 2), (1, 1), value=3.0)
    assert torch.equal(result.mean[..., 0], torch.full((1, 2), 3.0))
    assert torch.equal(result.variance[..., 0], torch.zeros(1, 2))


def test_questions_about_form():
    x = random_gaussian(2, 3)
    assert (x.shape, x.size(1), x.dim(), x.ndim, x.numel(), len(x)) == ((2, 3), 3, 2, 2, 6, 2)
    assert (x.dtype, x.device.type, x.is_cuda, x.requires_grad) == (torch.float32, "cpu", False, False)
    assert torch.numel(x) == 6
    assert torch.is_floating_point(x)


def test_active_dropout_has_no_rule():
    with pytest.raises(ProtoPFaithError, match=r"model\.eval"):
        torch.nn.Dropout(0.5)(random_gaussian(3))


def test_a_tensor_takes_the_form_of_a_random_variable():
    x = random_gaussian(2, 3, 4, 5)
    assert torch.zeros(2, 1, 1, 1).expand_as(x).shape == (2, 3, 4, 5)
    with pytest.raises(ProtoPFaithError, match="no moment rule"):
        torch.zeros(2).expand(x)


@pytest.mark.parametrize("kind", [torch.long, torch.uint8, torch.bool, torch.zeros(1, dtype=torch.int32)])
def test_whole_numbers_would_cut_variances_off(kind):
    given = random_gaussian(3)
    with pytest.raises(ProtoPFaithError, match="floating-point numbers, not torch"):
        given.to(kind)
    assert given.to(torch.float64).dtype == torch.float64

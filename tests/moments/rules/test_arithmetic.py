import pytest
import torch

from protopfaith.errors import ProtoPFaithError
from protopfaith.moments import Gaussian
from tests.moments.reference import assert_within_standard_errors, random_gaussian, sample

CONSTANT = torch.tensor([[1.0], [-2.0], [0.5]])
ONE = {
    "add number": lambda x: x + 2,
    "add tensor": lambda x: torch.add(x, CONSTANT),
    "tensor add": lambda x: CONSTANT + x,
    "add scaled": lambda x: torch.add(x, CONSTANT, alpha=3),
    "subtract": lambda x: x - 2.5,
    "subtract from": lambda x: 1 - x,
    "tensor minus": lambda x: CONSTANT - x,
    "rsub": lambda x: torch.rsub(x, 3),
    "multiply": lambda x: x * CONSTANT,
    "number times": lambda x: -3 * x,
    "tensor times": lambda x: CONSTANT * x,
    "divide": lambda x: x / 4,
    "divide by tensor": lambda x: torch.div(x, CONSTANT),
    "negative": lambda x: -x,
    "method": lambda x: x.add(1).mul(2).sub(3).div(4).neg(),
    "itself": lambda x: x + x,
    "difference with itself": lambda x: x - x,
    "square": lambda x: x.square(),
    "power": lambda x: x**2,
    "times itself": lambda x: x * x,
}
TWO = {
    "sum": lambda x, y: x + y,
    "difference": lambda x, y: x - y,
    "scaled sum": lambda x, y: torch.add(x, y, alpha=-0.5),
    "product": lambda x, y: x * y,
    "broadcast": lambda x, y: x + y[:1],
}


@pytest.mark.parametrize("name", ONE)
def test_of_one_variable_agrees_with_sampling(name):
    x = random_gaussian(3, 4, low=-1, high=1)
    assert_within_standard_errors(ONE[name](x), ONE[name](sample(*x.moments, 50_000)))


@pytest.mark.parametrize("name", TWO)
def test_of_two_variables_agrees_with_sampling(name):
    x, y = random_gaussian(3, 4, low=-1, high=1), random_gaussian(3, 4, seed=1, low=-1, high=1)
    first, second = sample(*x.moments, 50_000), sample(*y.moments, 50_000, seed=1)
    slow = (lambda a, b: a + b[:, :1]) if name == "broadcast" else TWO[name]
    assert_within_standard_errors(TWO[name](x, y), slow(first, second))


@pytest.mark.parametrize("name", TWO)
def test_common_factors_correlate_two_variables(name):
    """A residual addition: both branches carry the same noise."""
    if name == "broadcast":
        pytest.skip("copies of one row are the same variables, which only factors know")
    generator = torch.Generator().manual_seed(3)
    fx, fy = torch.randn(2, 2, 3, generator=generator, dtype=torch.float64)
    own = torch.rand(2, 3, generator=generator, dtype=torch.float64) * 0.1
    means = torch.randn(2, 3, generator=generator, dtype=torch.float64)
    e = torch.randn(100_000, 2, 1, generator=generator, dtype=torch.float64)
    noise = torch.randn(2, 100_000, 3, generator=generator, dtype=torch.float64)
    x, y = (Gaussian(means[i], own[i] + f.square().sum(0), f[:, :]) for i, f in enumerate((fx, fy)))
    samples = [means[i] + (e * f).sum(1) + own[i].sqrt() * noise[i] for i, f in enumerate((fx, fy))]
    result = TWO[name](x, y)
    if name == "product":
        pytest.skip("the mean of a product leaves their covariance out")
    assert_within_standard_errors(result, TWO[name](*samples))


def test_a_variable_minus_itself_is_zero():
    x = random_gaussian(5)
    assert torch.equal((x - x).variance, torch.zeros(5))


def test_arguments_go_by_the_names_that_torch_gives_them():
    x = random_gaussian(3)
    for function in (torch.add, torch.sub, torch.mul, torch.div, torch.rsub, torch.maximum):
        named, plain = function(input=x, other=torch.full((3,), 2.0)), function(x, torch.full((3,), 2.0))
        assert torch.equal(named.mean, plain.mean)
        assert torch.equal(named.variance, plain.variance)


@pytest.mark.parametrize("function", [lambda x: 1 / x, lambda x: x**3, lambda x: 2**x, lambda x: x / x])
def test_what_has_no_rule_says_so(function):
    with pytest.raises(ProtoPFaithError, match="no moment rule"):
        function(random_gaussian(3))

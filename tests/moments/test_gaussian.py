import copy
import pickle

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from protopfaith.errors import ProtoPFaithError
from protopfaith.moments import RULES, Gaussian, rule
from protopfaith.moments.dispatch import forms
from tests.moments.reference import random_gaussian

RELU = {
    "function": torch.relu,
    "functional": F.relu,
    "method": lambda x: x.relu(),
    "module": nn.ReLU(),
    "functional in place": lambda x: F.relu(x, inplace=True),
    "module in place": nn.ReLU(inplace=True),
    "function in place": torch.relu_,
    "method in place": lambda x: x.relu_(),
    "clamp_": lambda x: x.clamp_(min=0),
    "hardtanh in place": nn.Hardtanh(0.0, 1e9, inplace=True),
}


@pytest.mark.parametrize("name", RELU)
def test_all_forms_of_a_function_dispatch(name):
    x = random_gaussian(30, low=-2, high=2)
    expected = torch.relu(x)
    argument = Gaussian(*x.moments)
    result = RELU[name](argument)
    assert torch.allclose(result.mean, expected.mean, rtol=1e-5, atol=1e-6)
    assert torch.allclose(result.variance, expected.variance, rtol=1e-3)
    in_place = "place" in name or name.endswith("_")
    assert (result is argument) == in_place
    assert torch.equal(argument.mean, x.mean) != in_place


def test_a_mean_of_whole_numbers_is_refused():
    """The variance would become whole as well: 0.5 was 0."""
    with pytest.raises(ProtoPFaithError, match=r"whole numbers \(torch\.int64\); give mean\.float\(\)"):
        Gaussian(torch.ones(3, dtype=torch.int64), 0.5)


def test_in_place_sums_change_their_argument():
    x = Gaussian(torch.ones(3), 1.0)
    alias = x
    x += Gaussian(torch.ones(3), 2.0)
    x *= 2
    x -= 1
    x /= 3
    assert alias is x
    assert alias.mean.tolist() == [1.0, 1.0, 1.0]
    assert torch.allclose(alias.variance, torch.full((3,), 3 * 4 / 9))


def test_in_place_on_shared_views_is_refused():
    x = random_gaussian(4, 3)
    view = x[:, :2]
    with pytest.raises(ProtoPFaithError, match="in place"):
        view.relu_()
    with pytest.raises(ProtoPFaithError, match="in place"):
        x.relu_()
    del x
    view.relu_()  # nobody else is left
    assert bool((view.mean >= 0).all())


def test_setting_items_has_no_rule():
    with pytest.raises(ProtoPFaithError, match="__setitem__"):
        random_gaussian(3)[0] = 1.0


def test_the_mean_is_a_tensor_and_a_method():
    x = random_gaussian(2, 3, 4)
    assert isinstance(x.mean, torch.Tensor)
    assert type(x.mean + 1) is torch.Tensor
    assert repr(x.mean) == repr(x.moments[0])
    averaged = x.mean([1, 2])
    assert isinstance(averaged, Gaussian)
    assert torch.allclose(averaged.mean, x.moments[0].mean([1, 2]))


class _Block(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.conv = nn.Conv2d(2, 2, 1)
        self.act = act

    def forward(self, x):
        return self.act(self.conv(x))


def test_a_missing_rule_names_operation_and_module_and_shows_how_to_add_one():
    model = nn.Sequential(nn.Conv2d(2, 2, 1), nn.ModuleDict({"deep": _Block(nn.Softplus())})["deep"])
    with pytest.raises(ProtoPFaithError) as caught:
        model(random_gaussian(1, 2, 3, 3))
    message = str(caught.value)
    assert "softplus" in message
    assert "called from 1.act (Softplus)" in message
    assert "@protopfaith.moments.rule(torch.nn.functional.softplus)" in message


@pytest.mark.parametrize(
    "function",
    [
        *(torch.exp, bool, float, lambda x: x > 0, lambda x: x == 1, lambda x: x @ x),
        *(lambda x: x // 2, lambda x: 2 // x, lambda x: x % 2, lambda x: 2 % x),
        *(lambda x: x & 2, lambda x: 2 | x, lambda x: x << 1, lambda x: ~x),
    ],
)
def test_what_is_not_known_is_an_error_never_a_guess(function):
    with pytest.raises(ProtoPFaithError, match=r"no moment rule for .* outside any module"):
        function(random_gaussian(1))


@pytest.mark.parametrize(
    ("function", "argument"),
    [
        (lambda x: torch.div(x, 2, rounding_mode="floor"), "rounding_mode"),
        (lambda x: x.div_(2, rounding_mode="trunc"), "rounding_mode"),
        (lambda x: torch.add(x, 1, out=torch.empty(3)), "out"),
        (lambda x: torch.sum(x, 0, out=torch.empty(())), "out"),
        (lambda x: torch.cat([x, x], out=torch.empty(6)), "out"),
        (lambda x: torch.amax(x, axis=0), "axis"),
        (lambda x: x.sigmoid(1), "too many"),
    ],
)
def test_an_argument_without_a_rule_is_named(function, argument):
    with pytest.raises(ProtoPFaithError, match=rf"no moment rule for torch.*{argument}.*called from"):
        function(random_gaussian(3))


def test_a_mistake_inside_a_rule_stays_what_it_is():
    @rule("deg2rad")
    def broken(function, x):
        return len(3)

    try:
        with pytest.raises(TypeError, match="has no len"):
            random_gaussian(3).deg2rad()
    finally:
        for form in forms("deg2rad"):
            del RULES[form]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x + "text",
        lambda x: x.reshape(7),
        lambda x: x[9],
        lambda x: torch.cat([x, random_gaussian(2, 2)]),
        lambda x: torch.nn.functional.linear(x, torch.ones(5, 5)),
        lambda x: x.linear_map(None, None, None),
        lambda x: x.scale(lambda m: "text", torch.neg, torch.neg),
        lambda x: x.each(lambda m: [1, 2]),
        lambda x: x.become(torch.zeros(3), "relu_"),
        lambda x: Gaussian.joined([], torch.cat),
        lambda x: Gaussian.joined([x, "text"], torch.cat),
        lambda x: Gaussian.trusted(None),
    ],
)
def test_wrong_arguments_are_one_sentence(call):
    said = r"cannot be applied to these random variables|^The mean must be a tensor"
    with pytest.raises(ProtoPFaithError, match=said):
        call(random_gaussian(3))


def test_memory_that_ran_out_is_told_as_it_is():
    """Whoever asked tries again with less at a time."""

    def scarce(values):
        raise torch.OutOfMemoryError("CUDA out of memory.")

    with pytest.raises(torch.OutOfMemoryError):
        random_gaussian(3).each(scarce)


def test_unknown_attributes_are_ordinary_errors():
    assert not hasattr(random_gaussian(1), "no_such_thing")


def test_a_rule_can_be_added():
    @rule("exp")
    def lognormal(function, x):
        """mean = exp(m + v/2); variance = (exp(v) - 1) exp(2 m + v)"""
        mean, variance = x.moments
        return Gaussian(
            torch.exp(mean + variance / 2), torch.expm1(variance) * torch.exp(2 * mean + variance)
        )

    try:
        x = Gaussian(torch.tensor([0.0]), torch.tensor([1.0]))
        assert torch.exp(x).mean.item() == pytest.approx(1.6487, rel=1e-4)
        assert x.exp_() is x
    finally:
        for form in forms("exp"):
            del RULES[form]


def test_an_unknown_name_cannot_be_registered():
    with pytest.raises(ValueError, match="no_such_function"):
        rule("no_such_function")(lambda *_: None)


@pytest.mark.parametrize(
    ("variance", "factors"), [(torch.zeros(2), None), (torch.zeros(3), torch.zeros(4, 2))]
)
def test_shapes_must_agree(variance, factors):
    with pytest.raises(ProtoPFaithError, match="shape"):
        Gaussian(torch.zeros(3), variance, factors)


def test_autocast_lowers_convolutions_as_usual():
    layer = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
    x = Gaussian(torch.randn(1, 3, 8, 8), 0.5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = layer(x)
    assert low.dtype == torch.bfloat16
    assert torch.allclose(low.mean.float(), layer(x).mean, atol=0.05)


def test_copies_have_the_same_moments_and_lives_of_their_own():
    original = Gaussian(torch.randn(2, 3), torch.rand(2, 3))
    for other in (copy.deepcopy(original), pickle.loads(pickle.dumps(original))):
        assert torch.equal(other.mean, original.mean)
        assert torch.equal(other.variance, original.variance)
        other += 1
        assert not torch.equal(other.mean, original.mean)


def test_it_shows_itself_in_one_line():
    x = Gaussian(torch.zeros(2, 3), 1.0, torch.zeros(4, 2, 3))
    assert repr(x) == "Gaussian(2 x 3, torch.float32 on cpu, 4 common factors)"
    assert repr(Gaussian(torch.tensor(0.0))) == "Gaussian(one number, torch.float32 on cpu)"


def test_a_row_and_a_column_that_make_too_many_together_are_refused():
    column, row = Gaussian(torch.zeros(200_000, 1), 1.0), Gaussian(torch.zeros(1, 200_000), 1.0)
    for call in (lambda: column + row, lambda: column * row, lambda: column + torch.zeros(1, 200_000)):
        with pytest.raises(ProtoPFaithError, match="40,000,000,000 together"):
            call()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_what_is_no_number_is_refused(dtype):
    odd = torch.tensor([0.0, torch.nan, 1.0], dtype=dtype)
    with pytest.raises(ProtoPFaithError, match="NaN in the mean"):
        Gaussian(odd)
    with pytest.raises(ProtoPFaithError, match="NaN in the factors"):
        Gaussian(torch.zeros(3, dtype=dtype), 1.0, odd[None])
    with pytest.raises(ProtoPFaithError, match="not a number"):
        Gaussian(torch.zeros(3, dtype=dtype), odd)
    assert Gaussian(torch.full((3,), -torch.inf, dtype=dtype)).mean.isinf().all()


@pytest.mark.parametrize("given", [("x",), (torch.zeros(2), "x"), (torch.zeros(2), 1.0, [1.0])])
def test_what_is_trusted_is_still_a_tensor(given):
    with pytest.raises(ProtoPFaithError, match=r"^The (mean|variance|factors) must be a tensor"):
        Gaussian.trusted(*given)


def test_with_a_plus_before_it_nothing_changes():
    given = random_gaussian(3)
    found = +given
    assert torch.equal(found.mean, given.mean)
    assert torch.equal(found.variance, given.variance)

"""Gaussian: a tensor of random variables that runs through any network."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.func import vmap

from protopfaith.arguments import finite_number, instance, plain_tensor
from protopfaith.errors import ProtoPFaithError
from protopfaith.moments.dispatch import in_a_sentence, missing_rule, run

# Questions about form, which the mean answers.
_FORM = (
    *("shape", "size", "dim", "ndim", "ndimension", "numel", "nelement", "stride", "is_contiguous", "layout"),
    *("device", "get_device", "is_cuda", "is_cpu", "is_meta", "requires_grad", "dtype", "element_size"),
    *("is_floating_point", "is_complex", "is_sparse", "is_quantized", "is_nested", "is_mkldnn"),
)


def _operator(name: str) -> Callable[..., Any]:
    method = getattr(torch.Tensor, name)

    def operator(self: Any, *args: Any) -> Any:
        return run(method, (self, *args), None)

    operator.__name__ = name
    return operator


WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
MOST_NUMBERS = 2**32  # 16 GiB of them; whatever is done with more takes several times that
ROUNDING = 1e-5  # below zero, as a share of the largest variance: what rounding may leave


def _is_variance(given: Tensor) -> bool:
    """Whether all are numbers of at least zero, but for rounding."""
    if not given.numel():
        return True
    if given.dtype in (torch.uint16, torch.uint32, torch.uint64):
        given = given.double()  # of which torch knows no smallest
    lowest, largest = given.aminmax()  # takes no memory; NaN where there is one
    return bool(lowest >= -ROUNDING * torch.maximum(largest, -lowest))


def _has_nan(given: Tensor) -> bool:
    """Whether something is no number, told without a copy of all of them."""
    return given.is_floating_point() and bool(given.numel()) and bool(given.aminmax()[0].isnan())


class Mean(Tensor):
    """The mean of a `Gaussian`: a tensor which, when called, averages the random variables themselves.

    Networks write `x.mean([2, 3])`; readers of a result write `x.mean`. This serves both.
    """

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]
    owner: Gaussian

    def __call__(self, *args: Any, **kwargs: Any) -> Gaussian:
        return run(torch.Tensor.mean, (self.owner, *args), kwargs)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return repr(self.as_subclass(Tensor))


class Gaussian:
    r"""Random variables of any shape, each with a mean and a variance.

    Torch functions, modules and methods take it in place of a tensor and return a Gaussian, by their rule in
    `RULES`; a function without a rule raises an error that says how to add one.

    Variables count as independent, unless `factors` (K, \*shape) say how they depend on K common,
    independent standard normal variables: then the covariance of two of them is $\sum_k F_{ku} F_{kw}$, and
    `variance` is still the whole variance of each (so at least $\sum_k F_{ku}^2$).

    Variables made from one another are not known to belong together: `x + x` is 2 x, but `y + x` with
    `y` a copy of `x` adds as independent variables do. The exception is what common factors account
    for.

    Args:
        mean: of every variable, of any shape
        variance: of every variable, of the mean's shape, or one number for all
        factors: how they depend on K common variables, (K, \*shape); None where they are independent

    >>> x = Gaussian(torch.zeros(1, 3, 8, 8), 1.0)
    >>> y = torch.nn.Conv2d(3, 4, 3)(x).relu()
    >>> y.mean.shape, y.variance.shape
    (torch.Size([1, 4, 6, 6]), torch.Size([1, 4, 6, 6]))
    """

    def __init__(self, mean: Tensor, variance: Tensor | float = 0.0, factors: Tensor | None = None):
        instance(mean, Tensor, "The mean", "a tensor")
        for given, what in ((mean, "The mean"), (variance, "The variance"), (factors, "The factors")):
            if isinstance(given, Tensor):
                plain_tensor(given, what, "a tensor")
                if given.numel() > MOST_NUMBERS:
                    raise ProtoPFaithError(
                        f"{what} has {given.numel():,} numbers, more than {MOST_NUMBERS:,}; give fewer at a "
                        "time."
                    )
                if what != "The variance" and _has_nan(given):
                    raise ProtoPFaithError(f"There is NaN in {what.lower()}; give numbers.")
        if mean.dtype in WHOLE:  # the variance would be cut off, too
            raise ProtoPFaithError(f"The mean has whole numbers ({mean.dtype}); give mean.float().")
        if factors is not None:
            instance(factors, Tensor, "The factors", "a tensor")
        if not isinstance(variance, Tensor):
            variance = finite_number(variance, "The variance", least=0)
        elif variance.dtype != torch.bool and not _is_variance(variance):
            raise ProtoPFaithError("A variance is negative or not a number; give numbers of at least zero.")
        self._set(mean, variance, factors)

    @classmethod
    @in_a_sentence
    def trusted(cls, mean: Tensor, variance: Tensor | float = 0.0, factors: Tensor | None = None) -> Gaussian:
        """The same without looking at the numbers, which takes time: for rules, which compute variances.

        Args:
            mean: of every variable, of any shape
            variance: of every variable, at least zero
            factors: as for `Gaussian` itself, or None
        """
        instance(mean, Tensor, "The mean", "a tensor")
        instance(variance, (Tensor, int, float), "The variance", "a tensor or a number")
        instance(factors, (Tensor, type(None)), "The factors", "a tensor or None")
        made = cls.__new__(cls)
        made._set(mean, variance, factors)
        return made

    def _set(self, mean: Tensor, variance: Tensor | float, factors: Tensor | None) -> None:
        variance = torch.as_tensor(variance, dtype=mean.dtype, device=mean.device)
        if variance.shape != mean.shape:
            if variance.dim() > 0:
                raise ProtoPFaithError(
                    f"The mean has shape {tuple(mean.shape)} but the variance {tuple(variance.shape)}; give "
                    "each random variable one of each, or one number for all variances."
                )
            variance = variance.expand_as(mean)
        if factors is not None and factors.shape[1:] != mean.shape:
            raise ProtoPFaithError(
                f"The factors have shape {tuple(factors.shape)}; expected (K, ...) with "
                f"{tuple(mean.shape)} at the end."
            )
        self._mean = mean.as_subclass(Tensor) if isinstance(mean, Mean) else mean
        self._variance, self._factors = variance, factors
        self._family: list[weakref.ref[Gaussian]] = [weakref.ref(self)]

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and pickled as variables of their own: who else looks at the same ones is not kept."""
        return Gaussian.trusted, (self._mean, self._variance, self._factors)

    @property
    def mean(self) -> Mean:
        mean = self._mean.as_subclass(Mean)
        mean.owner = self
        return mean

    @property
    def variance(self) -> Tensor:
        return self._variance

    @property
    def factors(self) -> Tensor | None:
        return self._factors

    @property
    def moments(self) -> tuple[Tensor, Tensor]:
        """Mean and variance, as plain tensors."""
        return self._mean, self._variance

    @property
    def own_variance(self) -> Tensor:
        """The part of the variance that no common factor accounts for."""
        if self._factors is None:
            return self._variance
        return (self._variance - self._factors.square().sum(0)).clamp_min(0)

    @in_a_sentence
    def linear_map(
        self,
        affine: Callable[[Tensor], Tensor],
        linear: Callable[[Tensor], Tensor],
        squared: Callable[[Tensor], Tensor],
        reach: Sequence[int] | None = None,
        key: tuple | None = None,
    ) -> Gaussian:
        """What a linear map makes of it.

        Args:
            affine: the map, for the mean
            linear: the map without its constant, for the factors
            squared: the map with squared weights, for the independent variance
            reach: where known: how many variables along each of the last dimensions one output sees
            key: where there is one: tells this map from others. Both serve inputs that know more than
                mean and variance
        """
        if self._factors is None:
            return Gaussian.trusted(affine(self._mean), squared(self._variance))
        factors = vmap(linear)(self._factors)
        return Gaussian.trusted(
            affine(self._mean), squared(self.own_variance) + factors.square().sum(0), factors
        )

    @in_a_sentence
    def scale(
        self,
        affine: Callable[[Tensor], Tensor],
        linear: Callable[[Tensor], Tensor],
        squared: Callable[[Tensor], Tensor],
        move: Callable[[Tensor], Tensor] | None = None,
    ) -> Gaussian:
        """A linear map that does not mix variables, so that what is known about each stays known.

        Args:
            affine: the map, for the mean
            linear: the map without its constant, for the factors
            squared: the map with squared weights, for the variance
            move: where each variable goes, if not to its own place
        """
        factors = None if self._factors is None else vmap(linear)(self._factors)
        return Gaussian.trusted(affine(self._mean), squared(self._variance), factors)

    @staticmethod
    @in_a_sentence
    def joined(parts: Sequence[Gaussian], join: Callable[[list[Tensor]], Tensor]) -> Gaussian:
        """Random variables put together, such as by concatenation.

        Args:
            parts: the random variables, in their order
            join: what puts a list of tensors together, such as `torch.cat`
        """
        like = max(parts, key=lambda part: part.factors is not None)
        parts = [constant(part, like) for part in parts]
        factors = None
        if like.factors is not None:
            factors = vmap(lambda *f: join(list(f)))(*(part.factors for part in parts))
        return Gaussian.trusted(
            join([part.moments[0] for part in parts]), join([part.variance for part in parts]), factors
        )

    @in_a_sentence
    def each(self, function: Callable[[Tensor], Any]) -> Any:
        """The same numbers elsewhere: mean, variance and factors alike are moved.

        Args:
            function: moves the numbers of a tensor without changing them
        """
        parts = [function(self._mean), function(self._variance)]
        if self._factors is not None:
            parts.append(_stacked([function(factor) for factor in self._factors]))
        if isinstance(parts[0], Tensor):
            return self._view(*parts)
        return tuple(self._view(*part) for part in zip(*parts, strict=True))

    @in_a_sentence
    def become(self, other: Gaussian, operation: str) -> Gaussian:
        """Takes over another's moments: what an in-place operation does to its argument.

        Args:
            other: whose moments are taken over, of the same shape
            operation: its name, for the error where other views share the variables
        """
        relatives = [relative for reference in self._family if (relative := reference()) is not None]
        if any(relative is not self for relative in relatives):
            raise ProtoPFaithError(
                f"{operation} would change random variables in place that other views share, which moment "
                "propagation cannot follow; use the operation that is not in place there."
            )
        if other._mean.shape != self._mean.shape:
            raise ProtoPFaithError(
                f"{operation} cannot change random variables of shape {tuple(self.shape)} in place into "
                f"{tuple(other.shape)}; use the operation that is not in place there."
            )
        self._mean, self._variance, self._factors = other._mean, other._variance, other._factors
        return self

    def _view(self, mean: Tensor, variance: Tensor, factors: Tensor | None = None) -> Gaussian:
        if mean is self._mean:
            return self
        view = Gaussian.trusted(mean, variance, factors)
        if mean.untyped_storage()._cdata == self._mean.untyped_storage()._cdata:
            self._family = [relative for relative in self._family if relative() is not None]
            self._family.append(weakref.ref(view))
            view._family = self._family
        return view

    @classmethod
    def __torch_function__(
        cls, function: Callable, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return run(function, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name in _FORM:
            return getattr(self._mean, name)
        if name.startswith("_") or not hasattr(torch.Tensor, name):
            raise AttributeError(f"Gaussian has no attribute {name!r}")
        method = getattr(torch.Tensor, name)
        if not callable(method):
            raise missing_rule(method)
        return partial(self._call, method)

    def _call(self, method: Callable, *args: Any, **kwargs: Any) -> Any:
        return run(method, (self, *args), kwargs)

    def __len__(self) -> int:
        return len(self._mean)

    def __iter__(self) -> Any:
        return iter(self.unbind(0))

    def __repr__(self) -> str:
        shape = " x ".join(str(side) for side in self.shape) or "one number"
        factors = "" if self._factors is None else f", {len(self._factors)} common factors"
        return f"Gaussian({shape}, {self.dtype} on {self.device}{factors})"

    # Python looks operators up on the class, past __getattr__. Those without a rule raise the error that
    # says so: a comparison, or the truth of a random variable, has none.
    __add__ = _operator("__add__")
    __radd__ = _operator("__radd__")
    __iadd__ = _operator("__iadd__")
    __sub__ = _operator("__sub__")
    __rsub__ = _operator("__rsub__")
    __isub__ = _operator("__isub__")
    __mul__ = _operator("__mul__")
    __rmul__ = _operator("__rmul__")
    __imul__ = _operator("__imul__")
    __truediv__ = _operator("__truediv__")
    __rtruediv__ = _operator("__rtruediv__")
    __itruediv__ = _operator("__itruediv__")
    __neg__ = _operator("__neg__")
    __pow__ = _operator("__pow__")
    __rpow__ = _operator("__rpow__")
    __floordiv__ = _operator("__floordiv__")
    __rfloordiv__ = _operator("__rfloordiv__")
    __mod__ = _operator("__mod__")
    __rmod__ = _operator("__rmod__")
    __matmul__ = _operator("__matmul__")
    __rmatmul__ = _operator("__rmatmul__")
    __and__ = __rand__ = _operator("__and__")
    __or__ = __ror__ = _operator("__or__")
    __xor__ = __rxor__ = _operator("__xor__")
    __lshift__ = __rlshift__ = _operator("__lshift__")
    __rshift__ = __rrshift__ = _operator("__rshift__")
    __invert__ = _operator("__invert__")
    __pos__ = _operator("__pos__")
    __getitem__ = _operator("__getitem__")
    __setitem__ = _operator("__setitem__")
    __lt__ = _operator("__lt__")
    __le__ = _operator("__le__")
    __gt__ = _operator("__gt__")
    __ge__ = _operator("__ge__")
    __bool__ = _operator("__bool__")
    __float__ = _operator("__float__")
    __int__ = _operator("__int__")
    __abs__ = _operator("__abs__")
    __eq__ = _operator("__eq__")
    __ne__ = _operator("__ne__")
    __hash__ = object.__hash__


def _stacked(results: list[Any]) -> Any:
    """Tensors along a new first dimension; of tuples of tensors, one by one."""
    if isinstance(results[0], Tensor):
        return torch.stack(results)
    return tuple(torch.stack(column) for column in zip(*results, strict=True))


def aligned(a: Any, b: Any) -> tuple[Gaussian, Gaussian]:
    """Two arguments of an operation, at least one of them random, as random variables of one shape; both have
    factors where one has."""
    like = max((x for x in (a, b) if isinstance(x, Gaussian)), key=lambda x: x.factors is not None)
    a, b = constant(a, like), constant(b, like)
    shape = common_shape(a, b)
    return _expanded(a, shape), _expanded(b, shape)


def common_shape(a: Gaussian | Tensor, b: Gaussian | Tensor) -> torch.Size:
    """The shape of both together; raises where a row and a column make more than any memory holds."""
    shape = torch.broadcast_shapes(a.shape, b.shape)
    if shape.numel() > MOST_NUMBERS:
        raise ProtoPFaithError(
            f"Random variables of the shapes {tuple(a.shape)} and {tuple(b.shape)} make {shape.numel():,} "
            f"together, more than {MOST_NUMBERS:,}; take fewer at a time."
        )
    return shape


def _expanded(x: Gaussian, shape: torch.Size) -> Gaussian:
    if x.shape == shape:
        return x
    mean, variance = (part.expand(shape) for part in x.moments)
    if x.factors is None:
        return Gaussian.trusted(mean, variance)
    # The factors' own dimension comes first, so the new ones go behind it.
    inner = x.factors.reshape(len(x.factors), *(1,) * (len(shape) - x.dim()), *x.shape)
    return Gaussian.trusted(mean, variance, inner.expand(-1, *shape))


def constant(value: Any, like: Gaussian) -> Gaussian:
    """A number or tensor as random variables of zero variance; random variables stay, but get zero factors
    where `like` has factors and they have none."""
    if isinstance(value, Gaussian):
        if like.factors is None or value.factors is not None:
            return value
        mean, variance = value.moments
    else:
        mean = torch.as_tensor(value, dtype=like.dtype, device=like.device)
        variance = torch.zeros_like(mean)
    factors = None if like.factors is None else mean.new_zeros(len(like.factors), *mean.shape)
    return Gaussian.trusted(mean, variance, factors)

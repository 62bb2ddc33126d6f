"""How much every prototype adds to a decision: the paper's scores, and the complete sum."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from protopfaith.annotations import check_arguments
from protopfaith.arguments import instance, tensor, whole_number
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import PrototypeNetwork, outcome_of, weights_of
from protopfaith.specs import class_number
from protopfaith.training.calibration import Calibrator, as_calibrator


@dataclass(frozen=True, eq=False)
class Decomposition:
    r"""A decision as a sum, in float64.

    For one class c the total is log P(c) = $\sum_k \Psi_k$ + rest, where

    - $\Psi_k = a_{ck}\,\sigma_k - \log(R) / K$ for each of the K prototypes of c, with the similarity
      $\sigma = -s$ (or the log similarity) and R the sum over classes of exp(logit);
    - the rest is what F adds from the prototypes of the other classes.

    Of several findings the total is the log odds of one of them: $\sum_k \Psi_k$ with $\Psi_k =
    a_{ck}\,\sigma_k + b / K$, where b is the offset of its calibration, and no rest.

    For two classes the total is log P(c) - log P(d); R cancels, so $\Psi_k = (a_{ck} - a_{dk})
    \sigma_k$ for the prototypes of both.

    Args:
        target: the class that is explained
        versus: the class that it is compared with, if any
        prototypes: indices of the K prototypes that are told apart, those of the target first
        scores: their shares in the total, (K,)
        weighted: weight times similarity, without the share of log R, (K,)
        rest: what all other prototypes add, together
        log_normalizer: log R; zero for a difference of classes, where it cancels; of a finding, minus the
            offset of its calibration

    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", ["cat", "dog"], prototypes_per_class=2, prototype_channels=8).eval()
    >>> with torch.no_grad():
    ...     found = decompose(model, model.distances(torch.zeros(1, 3, 32, 32))[0], target=0)
    >>> found.prototypes.tolist(), found.total < 0
    ([0, 1], True)
    """

    target: int
    versus: int | None
    prototypes: Tensor
    scores: Tensor
    weighted: Tensor
    rest: float
    log_normalizer: float

    @property
    def total(self) -> float:
        """log P(target), log P(target) - log P(versus), or the log odds of a finding."""
        return float(self.scores.sum()) + self.rest

    def __repr__(self) -> str:
        asked = f"target={self.target}" + ("" if self.versus is None else f", versus={self.versus}")
        return f"Decomposition({asked}, {len(self.prototypes)} prototypes, total={self.total:.4g})"


@dataclass(frozen=True, eq=False)
class Closeness:
    r"""What is explained, as a sum over how much closer the image is to prototypes than training images are
    on average.

    With similarities $\sigma_k$, their means $\bar\sigma_k$ over training images and the weights $w_k$ of
    what is explained, $\sum_k w_k \sigma_k = \sum_{k \text{ told apart}} w_k (\sigma_k - \bar\sigma_k)$ +
    others + average, where

    - others is $\sum_k w_k (\sigma_k - \bar\sigma_k)$ over all other prototypes,
    - average is $\sum_k w_k \bar\sigma_k$ over all prototypes: what an average training image gets.

    Args:
        class_index: whose prototypes are told apart
        prototypes: (K,): their indices
        shares: (K,): positive where the image is closer than usual in favor of the class
        others: the sum over all other prototypes
        average: what an average training image gets
    """

    class_index: int
    prototypes: Tensor
    shares: Tensor
    others: float
    average: float

    @property
    def total(self) -> float:
        """What is explained, for this class."""
        return float(self.shares.sum()) + self.others + self.average

    def __repr__(self) -> str:
        return (
            f"Closeness(class {self.class_index}, {len(self.prototypes)} prototypes, total={self.total:.4g})"
        )


def closeness(
    model: PrototypeNetwork, distances: Tensor, row: Tensor, mean_similarities: Tensor, class_index: int
) -> Closeness:
    """How much closer an image is to the prototypes of a class than training images are on average.

    Args:
        model: the network.
        distances: (P,), of the image.
        row: (P,), the weights with which similarities add up to what is explained.
        mean_similarities: (P,), over training images.
        class_index: the class whose prototypes are told apart.

    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", ["cat", "dog"], prototypes_per_class=2, prototype_channels=16)
    >>> row = class_row(model, 0)
    >>> found = closeness(model, torch.tensor([1.0, 2.0, 3.0, 4.0]), row, torch.full((4,), -3.0), 0)
    >>> found.shares.tolist(), found.others, found.average
    ([2.0, 1.0], 0.5, -3.0)
    """
    similarity = similarities(model, distances.detach().cpu().double())
    means, weights = mean_similarities.double(), row.cpu().double()
    shares = weights * (similarity - means)
    own = model.prototype_classes.cpu() == class_index
    return Closeness(
        class_index,
        torch.where(own)[0],
        shares[own],
        others=float(shares[~own].sum()),
        average=float((weights * means).sum()),
    )


def output_row(model: PrototypeNetwork, output: str, target: int, versus: int) -> Tensor:
    """The weights (P,), float64, with which similarities add up to an output of `protopfaith.specs.OUTPUTS`.

    Args:
        model: the network.
        output: `"margin"`, `"logit"` or `"versus"`; a log probability has no such weights, and those of the
            margin stand for it: they differ from its by a share in the normalizer that all classes have.
        target: the class.
        versus: the class that it is compared with.

    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", ["cat", "dog"], 1, 8)
    >>> [output_row(model, name, 0, 1).tolist() for name in ("margin", "logit", "versus")]
    [[0.75, -0.75], [1.0, -0.5], [1.5, -1.5]]
    """
    weights = weights_of(model).cpu().double()
    return output_weights(len(weights), output, target, versus) @ weights


def output_weights(classes: int, output: str, target: int, versus: int) -> Tensor:
    """The weights (C,), float64, with which logits add up to an output of `protopfaith.specs.OUTPUTS`.

    Args:
        classes: how many there are.
        output: as for `output_row`.
        target: the class.
        versus: the class that it is compared with.

    >>> [output_weights(2, name, 0, 1).tolist() for name in ("margin", "logit", "versus")]
    [[0.5, -0.5], [1.0, 0.0], [1.0, -1.0]]
    """
    weights = torch.zeros(classes, dtype=torch.float64)
    weights[target] = 1
    if output == "versus":
        weights[versus] -= 1
    elif output != "logit":
        weights -= 1 / classes
    return weights


def similarities(model: PrototypeNetwork, distances: Tensor) -> Tensor:
    """What F reads: -s, or the log similarity.

    Args:
        model: whose similarity it is.
        distances: (..., P).

    >>> from protopfaith.network import ProtoPNet
    >>> similarities(ProtoPNet("small", 2, 1, 8), torch.tensor([0.5, 2.0])).tolist()
    [-0.5, -2.0]
    """
    return model.similarities(distances)


def class_row(model: PrototypeNetwork, target: int, versus: int | None = None) -> Tensor:
    """The weights (P,) with which the similarities add up to the target's logit, or to a difference of
    logits.

    Args:
        model: the network.
        target: a class.
        versus: another one, whose logit is subtracted.

    >>> from protopfaith.network import ProtoPNet
    >>> class_row(ProtoPNet("small", ["cat", "dog"], 1, 8), 0).tolist()
    [1.0, -0.5]
    """
    check_arguments(class_row, locals())
    instance(model, nn.Module, "The network", "a prototype network")
    weights = weights_of(model)
    _check_classes(model, target, versus)
    return weights[target] if versus is None else weights[target] - weights[versus]


def paper_scores(model: PrototypeNetwork, distances: Tensor, target: int) -> Tensor:
    r"""The paper's $\Psi_k = -a_{ck} s_k - \log(R) / K$ of the target's K prototypes: (K,), float64.

    `distances` is (P,). R sums $\exp \sum_k -a_{\hat c k} s_k$ over all classes, each with **its
    own** prototypes alone, as the paper has it. So the scores add up to a log probability of their own,
    not to the network's, whose F also reads the prototypes of other classes: see `decompose` for that.

    Args:
        model: the network.
        distances: (P,), as the network computed them.
        target: the class.

    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", ["cat", "dog"], 1, 8)
    >>> scores = [paper_scores(model, torch.tensor([1.0, 3.0]), target) for target in (0, 1)]
    >>> round(float(torch.cat(scores).exp().sum()), 6)
    1.0
    """
    check_arguments(paper_scores, locals())
    instance(model, nn.Module, "The network", "a prototype network")
    _check_classes(model, target)
    weighted, owners = _weighted(model, distances), model.prototype_classes.cpu()
    owned = owners >= 0  # others are of no class
    own = weighted[owners.clamp_min(0), torch.arange(len(owners))]
    logits = torch.zeros(len(weighted), dtype=torch.float64).index_add_(0, owners[owned], own[owned])
    mine = own[owners == target]
    return mine - torch.logsumexp(logits, 0) / len(mine)


def decompose(
    model: PrototypeNetwork,
    distances: Tensor,
    target: int | None = None,
    versus: int | None = None,
    *,
    temperature: float | Calibrator | None = None,
) -> Decomposition:
    """The sum of which log P(target), or the difference to `versus`, is made.

    Args:
        model: the network.
        distances: (P,), as the network computed them.
        target: the class; the predicted one by default.
        versus: another class to compare it with.
        temperature: what logits are divided by before they become probabilities, or what else is done to
            them.

    >>> from protopfaith.network import ProtoPNet
    >>> model = ProtoPNet("small", ["cat", "dog"], prototypes_per_class=3, prototype_channels=16)
    >>> distances = torch.arange(1.0, 7.0)
    >>> log_p = model.logits(distances[None]).log_softmax(1)[0]
    >>> abs(decompose(model, distances, target=0).total - log_p[0].item()) < 1e-5
    True
    """
    check_arguments(decompose, locals())
    instance(model, nn.Module, "The network", "a prototype network")
    _check_classes(model, target, versus)
    calibrator = as_calibrator(temperature)
    weighted = _weighted(model, distances) / torch.tensor(calibrator.temperatures)[:, None].double()
    logits = calibrator(_weighted(model, distances).sum(1))
    target = int(logits.argmax()) if target is None else target
    owners = model.prototype_classes.cpu()
    if versus is None:
        named = torch.where(owners == target)[0]
        several = outcome_of(model) == "several"
        row = weighted[target]
        normalizer = -calibrator.offset(target) if several else float(torch.logsumexp(logits, 0))
    else:
        check_different(model, target, versus)
        named = torch.cat([torch.where(owners == c)[0] for c in (target, versus)])
        row, normalizer = weighted[target] - weighted[versus], 0.0
    terms = row[named]
    return Decomposition(
        target,
        versus,
        named,
        scores=terms - normalizer / len(named),
        weighted=terms,
        rest=float(row.sum() - terms.sum()),
        log_normalizer=normalizer,
    )


def find_class(model: PrototypeNetwork, name: str | int | None) -> int | None:
    """The number of a class, given by its name or number.

    Args:
        model: whose class it is.
        name: None stays None.

    >>> from protopfaith.network import ProtoPNet
    >>> find_class(ProtoPNet("small", ["cat", "dog"], 1, 8), "dog")
    1
    """
    return None if name is None else class_number(name, model.class_names)


def _weighted(model: PrototypeNetwork, distances: Tensor) -> Tensor:
    """Weight times similarity: (C, P), float64."""
    if len(tensor(distances, "Distances", "one number for each prototype", 1)) != len(model.prototypes):
        raise ProtoPFaithError(
            f"The network has {len(model.prototypes)} prototypes, but {len(distances)} distances were given; "
            "give those that it computed for one image."
        )
    similarity = similarities(model, distances.detach().cpu().double())
    return weights_of(model).cpu().double() * similarity


def _check_classes(model: PrototypeNetwork, *numbers: int | None) -> None:
    for number in numbers:
        if number is not None:
            whole_number(number, "The number of a class", least=0, most=len(model.class_names) - 1)


def check_different(model: PrototypeNetwork, target: int | None, versus: int | None) -> None:
    """Raises if a class is compared with itself."""
    if target is not None and target == versus:
        raise ProtoPFaithError(
            f"{model.class_names[target]!r} cannot be compared with itself; name another class."
        )

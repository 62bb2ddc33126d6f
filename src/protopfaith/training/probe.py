"""A linear probe: the best linear classifier on an encoder's averaged features, with the encoder untouched.

It is the least that anything trained should beat, and a good start for the plain classifier's head: V then
need not unlearn what it knows while a random head settles. How far V should move from there is asked of the
validation images: `blend` gives the networks on the straight line between the probe and what training made
of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter

import torch
from torch import Tensor, nn
from torch.nn import functional

from protopfaith.network import PatchNetwork
from protopfaith.training.batch_norm import batch_norms
from protopfaith.training.batches import ImageBatches
from protopfaith.training.calibration import fit_temperature
from protopfaith.training.finding_losses import finding_weights
from protopfaith.training.images import TrainingImages
from protopfaith.training.metrics import accuracy_of
from protopfaith.training.resemblance import signs_of_leakage

DECAYS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)
"""Of the weights, from simple to exact; features have at most unit variance."""
ITERATIONS = 40
"""Of L-BFGS for each decay; it goes on where the one before ended."""
HELD_OUT = 5
"""Without validation images every fifth image of each class decides on the decay."""
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Of the way from the probe to the trained network."""
START = 0.1
"""Of the probe's weights, for the head to start from: a head that knows all training images by heart already
has nothing left to teach V."""
QUIET = 0.1
"""Of the usual spread of features: what varies less on the training images is not made as large as the rest.
Channels that hardly answer to these may answer to others, and would then outweigh all that was learned."""
STATISTICS = 32
"""Batches from which batch norm is measured anew for a network between two others."""


@dataclass(frozen=True)
class LinearProbe:
    """A linear classifier of features: logits = weight x + bias.

    Args:
        weight: classes x channels
        bias: one for each class
        decay: weight decay that it was fitted with
        accuracy: balanced accuracy on what decided on the decay: validation images, or held-out ones
    """

    weight: Tensor
    bias: Tensor
    decay: float
    accuracy: float


def probe_encoder(model: PatchNetwork, images: TrainingImages, classes: int) -> tuple[LinearProbe, list[str]]:
    """The linear probe of V as it is, and what its features say about the data, in sentences."""
    training = model.training
    model.eval()

    def features(batches: ImageBatches) -> Tensor:
        return images.outputs(batches, lambda x: model.encoder(x).mean(dim=(2, 3)).float())

    train, validation, sentences = features(images.train), None, []
    if len(images.validation):
        validation = features(images.validation), images.validation.labels
        sentences = signs_of_leakage(train, validation[0])
    model.train(training)
    return fit_probe(train, images.train.labels, classes, validation), sentences


@torch.no_grad()
def temper(head: nn.Linear, logits: Tensor, labels: Tensor) -> None:
    """Makes a head as sure as the images warrant whose logits and labels these are.

    A probe's has fitted few images exactly. As a companion it would be so sure of its mistakes on changed
    images that V learned nothing else.

    Args:
        head: changed in place; the order of its logits stays
        logits: what it says of images that it was not fitted to, (N, C)
        labels: what they are
    """
    temperature = fit_temperature(logits.cpu(), labels.cpu())
    head.weight.div_(temperature)
    if head.bias is not None:
        head.bias.div_(temperature)


@torch.no_grad()
def measure_batch_norm(model: PatchNetwork, images: TrainingImages) -> None:
    """Measures the means and variances of V's batch norms anew, on training images: those of a network
    between two others do not lie between theirs."""
    model.eval()
    norms = batch_norms(model.encoder)
    if not norms:
        return
    before = [norm.momentum for norm in norms]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean of all batches
        norm.train()
    for pixels, _ in images.train.batches(images.order("batch norm")[:STATISTICS]):
        model.encoder(images.format(images.data.preprocessing.normalize(pixels)))
    for norm, momentum in zip(norms, before, strict=True):
        norm.momentum = momentum
        for buffer in norm.buffers():  # the same in all processes
            buffer.copy_(images.fabric.broadcast(buffer))


def fit_probe(
    features: Tensor,
    labels: Tensor,
    classes: int,
    validation: tuple[Tensor, Tensor] | None = None,
) -> LinearProbe:
    """Logistic regression, all classes of equal weight, its decay chosen by balanced accuracy on `validation`
    (features and labels).

    Args:
        features: images x channels
        labels: of the images
        classes: how many there are
        validation: features and labels of other images; None holds out every fifth image of a class

    >>> features = torch.tensor([[0.0], [0.1], [0.9], [1.0]])
    >>> labels = torch.tensor([0, 0, 1, 1])
    >>> fit_probe(features, labels, 2, (features, labels)).accuracy
    1.0
    """
    features = features.float()
    mean, spread = features.mean(0), features.std(0, correction=0)
    varies = spread > 1e-6 * (mean.abs() + 1e-6)  # constants say nothing
    spread = torch.where(varies, spread.clamp_min(QUIET * spread.square().mean().sqrt()), torch.inf)
    standard = (features - mean) / spread
    if validation is None:
        held_out = _every_fifth(labels)
        best = _best_of_path(
            standard[~held_out], labels[~held_out], classes, standard[held_out], labels[held_out]
        )
        path = _path(standard, labels, classes)
        weight, bias = next((weight, bias) for decay, weight, bias in path if decay == best.decay)
        best = LinearProbe(weight, bias, best.decay, best.accuracy)
    else:
        judged = (validation[0].float() - mean) / spread
        best = _best_of_path(standard, labels, classes, judged, validation[1])
    weight = best.weight / spread
    return LinearProbe(weight, best.bias - weight @ mean, best.decay, best.accuracy)


def _every_fifth(labels: Tensor) -> Tensor:
    """Which images are held out: every fifth of each class, never the only one."""
    held_out = torch.zeros_like(labels, dtype=torch.bool)
    for label in labels.unique():
        held_out[(labels == label).nonzero().flatten()[HELD_OUT - 1 :: HELD_OUT]] = True
    # Fewer than five of each: judged by what it was fitted to.
    return held_out if held_out.any() else ~held_out


def _best_of_path(
    features: Tensor, labels: Tensor, classes: int, judged: Tensor, judged_labels: Tensor
) -> LinearProbe:
    """The best of all decays; of equally good ones that of the smaller cross-entropy."""
    if not len(features):
        features, labels = judged, judged_labels
    found: list[tuple[tuple[float, float], LinearProbe]] = []
    for decay, weight, bias in _path(features, labels, classes):
        logits = functional.linear(judged, weight, bias)
        accuracy = accuracy_of(logits, judged_labels)
        loss = float(functional.cross_entropy(logits, judged_labels))
        found.append(((accuracy, -loss), LinearProbe(weight, bias, decay, accuracy)))
        ranks = [rank for rank, _ in found]
        if len(found) > 3 and max(ranks[-3:]) < max(ranks[:-3]):
            break  # it only fits the training images more closely from here
    return max(found, key=itemgetter(0))[1]


def _path(features: Tensor, labels: Tensor, classes: int) -> Iterator[tuple[float, Tensor, Tensor]]:
    """Decay, weight and bias of one fit after the other, each from where the last one ended."""
    weight = torch.zeros(classes, features.shape[1], device=features.device, requires_grad=True)
    bias = torch.zeros(classes, device=features.device, requires_grad=True)
    balance = class_weights(labels, classes)
    for decay in DECAYS:
        optimizer = torch.optim.LBFGS(
            [weight, bias], max_iter=ITERATIONS, tolerance_grad=1e-5, line_search_fn="strong_wolfe"
        )

        def loss(decay: float = decay, optimizer: torch.optim.Optimizer = optimizer) -> Tensor:
            optimizer.zero_grad()
            logits = functional.linear(features, weight, bias)
            value = functional.cross_entropy(logits, labels, balance) + decay / 2 * weight.square().sum()
            value.backward()
            return value

        with torch.enable_grad():
            optimizer.step(loss)
        yield decay, weight.detach().clone(), bias.detach().clone()


def class_weights(labels: Tensor, classes: int) -> Tensor:
    """One for each class, such that all classes count alike: N / (C n_c), of the classes that occur. For
    labels of findings (N, C) those of absence and presence, (2, C).

    >>> class_weights(torch.tensor([0, 0, 0, 1]), 2).tolist()
    [0.6666666865348816, 2.0]
    """
    if labels.dim() == 2:
        return finding_weights(labels)
    counts = torch.bincount(labels, minlength=classes).float()
    return torch.where(counts > 0, len(labels) / ((counts > 0).sum() * counts.clamp_min(1)), 0.0)


def blend(start: Mapping[str, Tensor], end: Mapping[str, Tensor], share: float) -> dict[str, Tensor]:
    """Weights at a `share` of the straight line from `start` to `end`; whole numbers are those of the end.

    >>> blend({"w": torch.zeros(1)}, {"w": torch.ones(1)}, 0.25)["w"].tolist()
    [0.25]
    """
    return {
        name: torch.lerp(start[name].to(last), last, share) if last.is_floating_point() else last
        for name, last in end.items()
    }

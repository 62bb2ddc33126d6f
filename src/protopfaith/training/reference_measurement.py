"""A `Reference` measured: a trained network asked about some of its training and validation images, once."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import torch
from torch import Tensor

from protopfaith.data import ImageData, ImageSet, Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.network import PrototypeNetwork, outcome_of
from protopfaith.progress import told_time
from protopfaith.training.calibration import as_calibrator, fit_calibrator, fit_temperature
from protopfaith.training.hidden import hidden_accuracies, seen_in_training
from protopfaith.training.reference import Reference, reference_of, weights_hash
from protopfaith.training.run import Run
from protopfaith.training.thresholds import choose_rules
from protopfaith.training.typical import fit_typical, traits, usual_distances

logger = logging.getLogger("protopfaith")
SAMPLE = 512  # images of each set at most, evenly spread: enough for means, little beside an explanation
RULED = 10_000  # validation images of several findings, some of which are rare
CALIBRATING = 5  # validation images at least: one alone, taken for another class, would make all even
HIDDEN = 256  # images of which half is hidden
TRIAL = 8  # images of the batch that is timed beforehand


def measure_reference(
    model: PrototypeNetwork, data: ImageData, *, batch_size: int = 64, hidden_seen: bool | None = None
) -> Reference:
    """Measures a network in evaluation mode on at most 512 training and as many validation images.

    Args:
        model: the network.
        data: the images it was trained on.
        batch_size: images per forward pass.
        hidden_seen: whether the network was trained on images with hidden regions, where known.
    """
    _check_fits(model, data)
    several = outcome_of(model) == "several"
    known, chosen = _sample(data.train), _sample(data.validation, RULED if several else SAMPLE)
    train, train_traits, owned = _seen(model, known, data.preprocessing, batch_size)
    validation, validation_traits, given = _seen(model, chosen, data.preprocessing, batch_size, asked=True)
    logits = _logits(model, validation)
    temperature = fit_temperature(logits, chosen.labels) if len(chosen) >= CALIBRATING else None
    calibrator = None
    if several and temperature is not None:
        calibrator = fit_calibrator(logits, chosen.labels, temperature)
    return Reference(
        weights_hash(model),
        model.similarities(train).mean(0),
        len(train),
        usual_distances(validation, chosen.labels, model.prototype_classes.cpu(), len(model.class_names)),
        temperature,
        len(chosen),
        _half_hidden(model, chosen, data.preprocessing, batch_size) if len(chosen) else None,
        hidden_seen,
        choose_rules(as_calibrator(calibrator)(logits).sigmoid(), chosen.labels) if several else None,
        calibrator,
        fit_typical(
            train_traits,
            owned,
            validation_traits,
            given,
            1 if several else len(model.class_names),
        ),
    )


def keep_reference(run: Run, data: ImageData, model: PrototypeNetwork) -> None:
    """Measures the model of a finished run, if that was not done yet, and keeps the result in its folder."""
    if reference_of(run, model) is None:
        measure_reference(model, data, hidden_seen=_hidden_seen(run.folder)).save(run.folder)


def measure_and_keep(model: PrototypeNetwork, data: ImageData, folder: Path | None) -> Reference:
    """Measures a network and keeps the result in the folder of its run, if there is one."""
    logger.info("Measuring the network once, on %s: about %s.", *_expected_work(model, data))
    found = measure_reference(model, data, hidden_seen=_hidden_seen(folder))
    if folder is not None:
        try:
            found.save(folder)
        except ProtoPFaithError as error:  # a folder that cannot be written to: measured again the next time
            logger.debug("%s", error)
    return found


def _check_fits(model: PrototypeNetwork, data: ImageData) -> None:
    """Raises if the images cannot be those that the network was trained on."""
    words = {"one": "classes", "several": "findings"}
    known, shown = len(model.class_names), len(data.train.classes)
    if outcome_of(model) != data.outcome or known != shown:
        raise ProtoPFaithError(
            f"The network knows {known} {words[outcome_of(model)]}, but the images are of {shown} "
            f"{words[data.outcome]}; give the images that it was trained on."
        )


@torch.no_grad()
def _logits(model: PrototypeNetwork, distances: Tensor) -> Tensor:
    """(images, C), float64, on the CPU; sums in float64."""
    weights = model.readout()
    if weights is not None:
        return model.similarities(distances) @ weights.cpu().double().T
    return model.logits(distances.to(model.prototypes)).double().cpu()


def _half_hidden(
    model: PrototypeNetwork, images: ImageSet, preprocessing: Preprocessing, batch_size: int
) -> tuple[float, float]:
    shares = (0.0, 0.5)
    found = hidden_accuracies(model, images, preprocessing, shares=shares, most=HIDDEN, batch_size=batch_size)
    return found[0.0], found[0.5]


def _hidden_seen(folder: Path | None) -> bool | None:
    """Whether the run's recipe hides regions of training images."""
    return None if folder is None else seen_in_training(Run(folder).recipe())


@torch.no_grad()
def _expected_work(model: PrototypeNetwork, data: ImageData) -> tuple[str, str]:
    """What `measure_reference` looks at, and how long that takes by one timed batch of training images."""
    most = RULED if outcome_of(model) == "several" else SAMPLE
    train, validation = len(_sample(data.train)), len(_sample(data.validation, most))
    passes = train + validation + 2 * min(validation, HIDDEN)
    trial = data.train.subset(range(min(TRIAL, len(data.train))))
    begun = time.perf_counter()
    _seen(model, trial, data.preprocessing, TRIAL)
    seconds = (time.perf_counter() - begun) * passes / max(len(trial), 1)
    return f"{train:,} training and {validation:,} validation images", told_time(seconds)


def _sample(images: ImageSet, most: int = SAMPLE) -> ImageSet:
    """Some of the images, the same ones each time, in their order. At random: every second image would be of
    every second class where classes take turns."""
    if len(images) <= most:
        return images
    chosen = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))[:most]
    return images.subset(chosen.sort().values.tolist())


@torch.no_grad()
def _seen(
    model: PrototypeNetwork,
    images: ImageSet,
    preprocessing: Preprocessing,
    batch_size: int,
    *,
    asked: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Distances (images, P) and traits (images, F), float64, on the CPU, and the classes (images,) that these
    are for; of several findings all are one class.

    The class is the image's own, or with `asked` the one that the network gives it. A new image is looked at
    with the latter, so a limit that it is held to must be, too: measured with the true class, one mistake of
    the network among few images would make everything usual.
    """
    distances, found = [torch.zeros(0, len(model.prototypes), dtype=torch.float64)], []
    one = images.outcome == "one"
    classes = images.labels.clone() if one else torch.zeros(len(images), dtype=torch.long)
    for start in range(0, len(images), batch_size):
        batch = range(start, min(start + batch_size, len(images)))
        inputs = preprocessing.normalize(images.uint8(batch).to(model.prototypes.device))
        maps = model.distance_maps(inputs)
        nearest = maps.amin(dim=(-2, -1))
        distances.append(nearest.double().cpu())
        if one and asked:
            classes[batch.start : batch.stop] = model.logits(nearest).argmax(1).cpu()
        found.append(traits(model, inputs, maps, classes[batch.start : batch.stop]))
    summed = torch.cat(found) if found else torch.zeros(0, 0, dtype=torch.float64)
    return torch.cat(distances), summed, classes

"""What a trained network is compared with when it is explained: the average training image, usual distances
and one temperature, measured once and kept with the run as `reference.json`."""

from __future__ import annotations

import hashlib
import json
import logging
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from protopfaith.arguments import finite_number, whole_number
from protopfaith.data import ImageData, ImageSet, Preprocessing
from protopfaith.errors import ProtoPFaithError
from protopfaith.files import plain_file, read_json
from protopfaith.network import PrototypeNetwork, outcome_of
from protopfaith.progress import told_time
from protopfaith.training.calibration import (
    TEMPERATURES,
    Calibrator,
    as_calibrator,
    calibrator_from_json,
    calibrator_to_json,
    fit_calibrator,
)
from protopfaith.training.hidden import hidden_accuracies, seen_in_training
from protopfaith.training.run import Run
from protopfaith.training.thresholds import FindingRule, choose_rules, rules_from_json, rules_to_json
from protopfaith.training.typical import Typical, fit_typical, traits
from protopfaith.writing import atomic

logger = logging.getLogger("protopfaith")
NAME = "reference.json"
FORMATS = (2, 3)  # the second one where findings have calibrations of their own
SAMPLE = 512  # images of each set at most, evenly spread: enough for means, little beside an explanation
RULED = 10_000  # validation images of several findings, some of which are rare
FEW = 100  # validation images of a class, below which the tails of all classes are taken together
CALIBRATING = 5  # validation images at least: one alone, taken for another class, would make all even
USUAL = 0.99  # share of the validation images that counts as usual
MUCH = 0.75  # of its accuracy is left to a network that knows images of which half is hidden
HIDDEN = 256  # images on which that is measured
TRIAL = 8  # images of the batch that is timed beforehand
MANY = 10**12  # more images than anybody has


@dataclass(frozen=True, eq=False, repr=False)
class Reference:
    """Measured on the images of a run.

    Args:
        weights_sha256: of the network that it belongs to.
        mean_similarities: (P,), float64: of every prototype, over training images.
        images: how many of them.
        usual_distances: (C,), float64: 99% of a class's validation images are nearer than this to the nearest
            prototype of their class; NaN where there are none. It decides where `typical` is not known.
        temperature: logits divided by it give calibrated probabilities; None with too few validation images.
            Of several findings, one for all.
        validation_images: how many it was fitted on.
        half_hidden: balanced accuracy on validation images, and again with half of each hidden; None where
            it was not measured.
        hidden_seen: whether the network was trained on images with hidden regions; None where not known.
        rules: how the probabilities of several findings are read, one for each; None for classes.
        by_finding: how the logits of several findings are calibrated, each by itself; None for classes, and
            in runs of earlier versions.
        typical: how images usually look; None with too few images, and in runs of earlier versions.
    """

    weights_sha256: str
    mean_similarities: Tensor
    images: int
    usual_distances: Tensor
    temperature: float | None
    validation_images: int
    half_hidden: tuple[float, float] | None = None
    hidden_seen: bool | None = None
    rules: tuple[FindingRule, ...] | None = None
    by_finding: Calibrator | None = None
    typical: Typical | None = None

    @property
    def calibrator(self) -> Calibrator | None:
        """What is done to logits before they become probabilities; None: nothing was fitted."""
        if self.by_finding is None and self.temperature is None:
            return None
        return self.by_finding or as_calibrator(self.temperature)

    def __repr__(self) -> str:
        fitted = "not calibrated" if self.temperature is None else f"temperature={self.temperature:.3g}"
        return (
            f"Reference({self.images} training images, {fitted}, {self.validation_images} validation images)"
        )

    def fits(self, model: PrototypeNetwork) -> bool:
        """Whether it has a number for each prototype and each class of a network.

        Args:
            model: the network
        """
        prototypes, classes = len(model.prototypes), len(model.class_names)
        several = outcome_of(model) == "several"
        calibrated = None if self.by_finding is None else self.by_finding.temperatures
        return (
            (len(self.mean_similarities), len(self.usual_distances)) == (prototypes, classes)
            and all(one is None or (several and len(one) == classes) for one in (self.rules, calibrated))
            and (self.typical is None or len(self.typical.means) == (1 if several else classes))
        )

    def about_hidden(self) -> str:
        """A sentence where the network is off on images with hidden regions, which coalitions are."""
        if self.half_hidden is None or self.half_hidden[1] >= MUCH * self.half_hidden[0]:
            return ""
        whole, half = self.half_hidden
        never = "was never shown images with hidden regions, and " if self.hidden_seen is False else ""
        return (
            f"This network {never}has a balanced accuracy of {half:.0%} when half of the image is hidden, "
            f"and of {whole:.0%} when nothing is (validation images): what it says about single regions is "
            "partly about their absence. Training with augmentation.hide.share=0.5 makes it know such images."
        )

    def save(self, folder: Path | str) -> Path:
        """Writes `reference.json` into a run's folder."""
        path = Path(folder) / NAME
        values = {
            "format": FORMATS[self.by_finding is not None],
            "weights_sha256": self.weights_sha256,
            "mean_similarities": self.mean_similarities.tolist(),
            "images": self.images,
            "usual_distances": [None if math.isnan(d) else d for d in self.usual_distances.tolist()],
            "temperature": self.temperature,
            "validation_images": self.validation_images,
            "half_hidden": self.half_hidden,
            "hidden_seen": self.hidden_seen,
            "findings": rules_to_json(self.rules),
            "calibration": calibrator_to_json(self.by_finding),
            "typical": None if self.typical is None else self.typical.to_json(),
        }
        with atomic(path) as partial:
            partial.write_text(json.dumps(values, indent=1), encoding="utf-8")
        return path

    @staticmethod
    def load(folder: Path | str, weights_sha256: str) -> Reference | None:
        """What lies in a run's folder; None where nothing is there, or it belongs to other weights."""
        path = Path(folder) / NAME
        try:
            values = read_json(plain_file(path), "a run")
            if values["weights_sha256"] != weights_sha256 or values.get("format") not in FORMATS:
                return None
            return _from_json(values)
        except (OSError, ValueError, LookupError, TypeError, ArithmeticError, ProtoPFaithError):
            return None  # measured anew


def _from_json(values: dict[str, Any]) -> Reference:
    """What `save` wrote; raises LookupError, TypeError, ValueError or ours for anything else."""
    temperature, hidden, seen = values["temperature"], values.get("half_hidden"), values.get("hidden_seen")
    if not isinstance(seen, bool | None):
        raise TypeError("hidden_seen is not what was measured")
    return Reference(
        values["weights_sha256"],
        _numbers(values["mean_similarities"]),
        whole_number(values["images"], "images", least=1, most=MANY),
        _numbers(values["usual_distances"], least=0, known=False),
        None if temperature is None else float(_numbers([temperature], *TEMPERATURES)[0]),
        whole_number(values["validation_images"], "validation_images", least=0, most=MANY),
        None if hidden is None else _pair(_numbers(hidden, 0, 1).tolist()),
        seen,
        rules_from_json(values.get("findings")),
        calibrator_from_json(values.get("calibration")),
        Typical.from_json(values.get("typical")),
    )


def _numbers(
    values: list[Any], least: float | None = None, most: float | None = None, *, known: bool = True
) -> Tensor:
    """Finite numbers; where they need not be known, None is not-a-number."""
    what = "A number of the reference"
    found = [
        math.nan if one is None and not known else finite_number(one, what, least=least, most=most)
        for one in values
    ]
    return torch.tensor(found, dtype=torch.float64)


def _pair(values: list[float]) -> tuple[float, float]:
    first, second = values
    return first, second


def weights_hash(model: PrototypeNetwork) -> str:
    """SHA-256 of all weights: the same network gives the same explanations."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


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


def fit_temperature(logits: Tensor, labels: Tensor) -> float:
    """The T for which softmax(logits / T) is most likely, given what the images are (Guo et al., 2017).

    The least sure image counts a second time, as one that was taken for its second class: a network without
    any mistake among few images does not become infinitely sure.

    Args:
        logits: (n, C).
        labels: (n,).

    >>> logits = torch.tensor([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    >>> fit_temperature(logits, torch.tensor([0, 0, 1, 1])) > 2  # right in three of four cases, not in 98%
    True
    """
    from scipy.optimize import minimize_scalar

    logits = logits.double()
    if labels.dim() == 2:  # findings: as two classes, presence and absence, of every known label
        known = ~labels.isnan()
        if not bool(known.any()):
            return 1.0
        odds = logits[known]
        logits, labels = torch.stack([torch.zeros_like(odds), odds], dim=1), labels[known].long()
    first, second = logits.topk(2, dim=1).values.T
    least = int((first - second).argmin())
    images = torch.cat([torch.arange(len(labels)), torch.tensor([least])])
    believed = torch.cat([labels, logits[least].topk(2).indices[1:]])

    def loss(log_t: float) -> float:
        return -float((logits / math.exp(log_t)).log_softmax(1)[images, believed].mean())

    bounds = (math.log(TEMPERATURES[0]), math.log(TEMPERATURES[1]))
    return float(math.exp(minimize_scalar(loss, bounds=bounds, args=(), method="bounded").x))


def usual_distances(distances: Tensor, labels: Tensor, owners: Tensor, classes: int) -> Tensor:
    """For each class the distance to its nearest prototype that 99% of its images keep: (C,).

    The tail of few images says little: distances are compared with the median of their class, and how far the
    tail lies from there is taken from all classes that have fewer than 100 images, together.

    Args:
        distances: (n, P).
        labels: (n,).
        owners: (P,), the class of each prototype.
        classes: how many there are.
    """
    found = torch.full((classes,), torch.nan, dtype=torch.float64)
    if labels.dim() == 2:
        return _usual_finding_distances(distances, ~labels.isnan(), owners, found)
    if not len(distances) or not bool(torch.isin(labels, owners).all()):  # prototypes of no class
        return found
    own = torch.where(owners == labels[:, None], distances, torch.inf).amin(1)
    members = [own[labels == label] for label in range(classes)]
    middle = torch.stack([m.median() if len(m) else own.median() for m in members]).clamp_min(1e-12)
    tail = torch.quantile(own / middle[labels], USUAL)
    for label, mine in enumerate(members):
        found[label] = torch.quantile(mine, USUAL) if len(mine) >= FEW else tail * middle[label]
    return found


def _usual_finding_distances(distances: Tensor, known: Tensor, owners: Tensor, found: Tensor) -> Tensor:
    """Of several findings: to the nearest prototype for it or against it, of all images where it is known."""
    for finding in range(len(found)):
        mine = distances[known[:, finding]][:, owners == finding]
        if mine.numel():
            found[finding] = torch.quantile(mine.amin(1), USUAL)
    return found


def keep_reference(run: Run, data: ImageData, model: PrototypeNetwork) -> None:
    """Measures the model of a finished run, if that was not done yet, and keeps the result in its folder."""
    if reference_of(run, model) is None:
        measure_reference(model, data, hidden_seen=_hidden_seen(run.folder)).save(run.folder)


def _hidden_seen(folder: Path | None) -> bool | None:
    """Whether the run's recipe hides regions of training images."""
    return None if folder is None else seen_in_training(Run(folder).recipe())


def reference_of(run: Run, model: PrototypeNetwork) -> Reference | None:
    """What is kept with a run; None where it was never measured, or is of other prototypes or classes."""
    found = Reference.load(run.folder, weights_hash(model))
    return found if found is not None and found.fits(model) else None


def temperature_of(run: Run, model: PrototypeNetwork) -> float | None:
    """The temperature that is kept with a run; None where it was never fitted."""
    found = reference_of(run, model)
    return None if found is None else found.temperature


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
